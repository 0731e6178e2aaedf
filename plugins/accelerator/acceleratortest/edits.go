package acceleratortest

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

var editChecks = []Check{
	{"edits-roots", "every node and mount is below the roots, the work or the state directory", editsRoots},
	{"edits-apart", "devices of different boards share no node, except for nodes that every device has", editsApart},
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
		return suite.Skip("there is only one device")
	}
	for node, ids := range users {
		if len(ids) == tried {
			continue // shared by all devices, such as a control device
		}
		for _, id := range ids[1:] {
			if board[id] != board[ids[0]] {
				return fmt.Errorf("%s is used by %s and by %s, but not by every device", node, ids[0], id)
			}
		}
	}
	return nil
}

// fractions tests every slot that can be allocated in parts, on the first device that has it.
func fractions(ctx context.Context, b *bench) error {
	c, s, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	tried := 0
	for _, slot := range s.GetSlots() {
		if slot.GetKind() != pb.SlotType_SHARES && slot.GetKind() != pb.SlotType_BYTES {
			continue
		}
		for _, d := range usable(s) {
			if have := d.GetCapacity()[slot.GetName()]; have != "" {
				if err := half(ctx, b, c, slot, d, have); err != nil {
					return fmt.Errorf("%s of %s: %w", slot.GetName(), d.GetId(), err)
				}
				tried++
				break
			}
		}
	}
	if tried == 0 {
		return suite.Skip("no device can be allocated in parts")
	}
	return nil
}

func half(ctx context.Context, b *bench, c *accelerator.Client, slot *pb.SlotType, d *pb.Device, have string) error {
	n, err := accelerator.ParseAmount(slot.GetKind(), have)
	if err != nil {
		return err
	}
	step := int64(1)
	if q := slot.GetQuantum(); q != "" {
		if step, err = accelerator.ParseAmount(slot.GetKind(), q); err != nil {
			return err
		}
	}
	ask := func(n int64) (*pb.PrepareResponse, error) {
		a := &pb.Allocation{Slot: slot.GetName(), DeviceId: d.GetId(), Amount: accelerator.FormatAmount(slot.GetKind(), n)}
		return once(ctx, b, c, a)
	}
	part := n / 2 / step * step
	if part == 0 {
		return nil // it cannot be divided by two
	}
	some, err := ask(part)
	if err != nil {
		return err
	}
	whole, err := ask(n)
	if err != nil {
		return err
	}
	got, most := some.GetAttached()[0].GetMemoryBytes(), whole.GetAttached()[0].GetMemoryBytes()
	if most > 0 && (got == 0 || got > most*6/10) {
		return fmt.Errorf("half of the device may use %d of %d bytes", got, most)
	}
	some.Attached, whole.Attached, some.State, whole.State = nil, nil, nil, nil
	if proto.Equal(some, whole) {
		return fmt.Errorf("a container with half of the device gets the same values as one with all of it: %v", some)
	}
	if step > 1 {
		_, err = ask(part + 1)
		return want("an amount between two steps", err, codes.InvalidArgument)
	}
	return nil
}

// unified allocates half of a device under one alias of its amount and half under the next, to two
// containers, on the first device with several aliases.
func unified(ctx context.Context, b *bench) error {
	c, s, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	for _, d := range usable(s) {
		if halves := halvesOf(s, d); len(halves) > 1 {
			for i, one := range halves {
				other := halves[(i+1)%len(halves)]
				if err := beside(ctx, b, c, d, one, other); err != nil {
					return fmt.Errorf("%s %s beside %s %s of %s: %w", one.Amount, one.Slot, other.Amount, other.Slot, d.GetId(), err)
				}
			}
			return nil
		}
	}
	return suite.Skip("no device has two names of one amount that can be halved")
}

// halvesOf returns allocations of half of a device, one for each alias of its amount.
func halvesOf(s *pb.DeviceSnapshot, d *pb.Device) []*pb.Allocation {
	var out []*pb.Allocation
	for _, slot := range s.GetSlots() {
		have := d.GetCapacity()[slot.GetName()]
		if have == "" || !slot.GetUnified() {
			continue
		}
		n, err := accelerator.ParseAmount(slot.GetKind(), have) // validated before
		if err != nil {
			continue
		}
		step := int64(1)
		if q, err := accelerator.ParseAmount(slot.GetKind(), slot.GetQuantum()); err == nil && q > 0 {
			step = q
		}
		if n = n / 2 / step * step; n > 0 {
			out = append(out, &pb.Allocation{Slot: slot.GetName(), DeviceId: d.GetId(), Amount: accelerator.FormatAmount(slot.GetKind(), n)})
		}
	}
	return out
}

// beside prepares two allocations of a device that are live at the same time.
func beside(ctx context.Context, b *bench, c *accelerator.Client, d *pb.Device, list ...*pb.Allocation) error {
	var memory, units uint64
	for i, a := range list {
		id := fmt.Sprintf("beside-%d", i)
		r, err := c.Prepare(ctx, prepare(id, b.dir, a))
		if err != nil {
			return err
		}
		defer func() { _, _ = c.Unprepare(ctx, &pb.UnprepareRequest{AllocationId: id, State: r.GetState()}) }()
		if err := answer(r, a); err != nil {
			return err
		}
		memory += r.GetAttached()[0].GetMemoryBytes()
		units += uint64(r.GetAttached()[0].GetProcessingUnits())
	}
	if most := d.GetMemoryBytes(); most > 0 && memory > most {
		return fmt.Errorf("together they may use %d of %d bytes", memory, most)
	}
	if most := d.GetProcessingUnits(); most > 0 && units > uint64(most) {
		return fmt.Errorf("together they may use %d of %d processing units", units, most)
	}
	return nil
}
