package acceleratortest

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

var editChecks = []Check{
	{"edits-roots", "every node and mount comes from the roots, the work or the state directory", editsRoots},
	{"edits-apart", "devices of different boards share no node, but for those that every device has", editsApart},
}

// maxPrepared limits how many devices of a large machine are tested.
const maxPrepared = 16

// prepared prepares devices one after the other and passes each response to the callback.
func (b *bench) prepared(ctx context.Context, tell func(*accelerator.Client, *pb.Device, *pb.PrepareRequest, *pb.ContainerEdits) error) error {
	c, s, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	devices := usable(s)
	for i := range min(len(devices), maxPrepared) {
		d := devices[i*len(devices)/min(len(devices), maxPrepared)] // spread over the whole list
		req := prepare(fmt.Sprint("device-", i), b.dir, all(s, d))
		r, err := c.Prepare(ctx, req)
		if err != nil {
			return fmt.Errorf("%s: %w", d.GetId(), err)
		}
		if err := tell(c, d, req, r.GetEdits()); err != nil {
			return fmt.Errorf("%s: %w", d.GetId(), err)
		}
		if _, err := c.Unprepare(ctx, &pb.UnprepareRequest{AllocationId: req.GetAllocationId(), State: r.GetState()}); err != nil {
			return err
		}
	}
	return nil
}

// editsRoots applies the agent's rule: besides the roots, mounts can come from the directories in
// which drivers and the plugin itself are installed.
func editsRoots(ctx context.Context, b *bench) error {
	r := b.request().GetRoots()
	program, err := filepath.Abs(b.plugin.Path)
	if err != nil {
		return err
	}
	dev := cmp.Or(r.GetDev(), "/dev")
	dir := filepath.Dir(program)
	installed := append([]string{cmp.Or(r.GetSys(), "/sys"), dir, filepath.Join(dir, "../lib")}, r.GetPath()...)
	if driver := r.GetDriver(); driver != "" && driver != "/" {
		installed = append(installed, driver)
	} else {
		installed = append(installed, "/usr", "/lib", "/lib32", "/lib64", "/opt")
	}
	return b.prepared(ctx, func(_ *accelerator.Client, _ *pb.Device, req *pb.PrepareRequest, e *pb.ContainerEdits) error {
		for _, n := range e.GetDeviceNodes() {
			// The mock uses a device file of the real machine, because a simulated machine has none
			// for it.
			if host := cmp.Or(n.GetHostPath(), n.GetPath()); !below(host, dev) && !(b.bare() && below(host, "/dev")) {
				return fmt.Errorf("node %s is not below %s", host, dev)
			}
		}
		own := []string{dev, b.state(), req.GetWorkDir()}
		for _, m := range e.GetMounts() {
			from := own
			if !m.GetWritable() {
				from = slices.Concat(own, installed)
			}
			if !slices.ContainsFunc(from, func(dir string) bool { return below(m.GetSource(), dir) }) {
				return fmt.Errorf("mount of %s (writable: %v) is not below one of %v", m.GetSource(), m.GetWritable(), from)
			}
		}
		return nil
	})
}

func below(p, dir string) bool { return strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") }

func editsApart(ctx context.Context, b *bench) error {
	_, s, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	board := boards(s)
	users := map[string][]string{} // device file to devices
	tried := 0
	err = b.prepared(ctx, func(_ *accelerator.Client, d *pb.Device, _ *pb.PrepareRequest, e *pb.ContainerEdits) error {
		tried++
		for _, n := range e.GetDeviceNodes() {
			host := cmp.Or(n.GetHostPath(), n.GetPath())
			if !slices.Contains(users[host], d.GetId()) {
				users[host] = append(users[host], d.GetId())
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if tried < 2 {
		return suite.Skip("there is one device only")
	}
	for node, ids := range users {
		if len(ids) == tried {
			continue // shared by all devices, such as a control device
		}
		for _, id := range ids[1:] {
			if board[id] != board[ids[0]] {
				return fmt.Errorf("%s is given with %s and with %s, but not with every device", node, ids[0], id)
			}
		}
	}
	return nil
}
