package acceleratortest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/grpc/codes"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var deviceChecks = []Check{
	{"snapshot", "the first snapshot comes at once and keeps the rules", firstSnapshot},
	{"expected", "the fixture's machine is seen as it is: devices, those to give away, sums of slots", expected},
	{"parts", "what fits together by counters is no more than the device it is cut from", parts},
	{"stable", "another process on the same hardware gives the same snapshot", stable},
	{"mask", "masked devices are left out, the others stay", mask},
	{"no-hardware", "without hardware and driver the plugin is healthy and empty", noHardware},
	{"health", "WatchHealth tells every device that is not healthy", health},
}

func firstSnapshot(ctx context.Context, b *bench) error {
	_, _, err := b.ready(ctx)
	return err
}

func stable(ctx context.Context, b *bench) error {
	_, first, err := b.ready(ctx)
	if err != nil {
		return err
	}
	_, second, err := b.ready(ctx)
	if err != nil {
		return err
	}
	return equal("snapshots of two processes differ", first, second)
}

func mask(ctx context.Context, b *bench) error {
	c, before, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	gone := before.GetDevices()[0].GetId()
	req := b.request()
	req.DeviceMask = []string{gone, "no-such-device"}
	if _, err := c.Configure(ctx, req); err != nil {
		return err
	}
	after, err := snapshot(ctx, c)
	if err != nil {
		return err
	}
	for _, d := range before.GetDevices() {
		masked := d.GetId() == gone || d.GetParentId() == gone
		if here := device(after, d.GetId()) != nil; here == masked {
			return fmt.Errorf("device %s: shown %v after %s was masked", d.GetId(), here, gone)
		}
	}
	return nil
}

func device(s *pb.DeviceSnapshot, id string) *pb.Device {
	for _, d := range s.GetDevices() {
		if d.GetId() == id {
			return d
		}
	}
	return nil
}

// noHardware points every root to an empty directory. Plugins without PCI vendors can have devices
// from other sources, so they are skipped.
func noHardware(ctx context.Context, b *bench) error {
	empty := filepath.Join(b.dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		return err
	}
	if m := b.site.machine; m != nil && len(m.Servers) > 0 {
		b.plugin.Config = b.site.plugin.Config // no settings that lead to a server
	}
	b.plugin.Roots = &pb.Roots{Sys: empty, Dev: empty, Proc: empty, Driver: empty, Path: []string{empty}}
	c, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	if n := len(s.GetDevices()); n > 0 && (len(c.Description.GetPciVendors()) > 0 || !b.bare()) {
		return fmt.Errorf("%d devices out of nothing", n)
	}
	if _, err := c.Preflight(ctx, &pb.PreflightRequest{}); err != nil {
		return err
	}
	if log := b.log.String(); len(log) > 0 {
		return fmt.Errorf("logs at info level or above although nothing is wrong: %s", log)
	}
	return nil
}

func has(d *pb.DescribeResponse, c pb.Capability) bool {
	return slices.Contains(d.GetCapabilities(), c)
}

func health(ctx context.Context, b *bench) error {
	c, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w, err := c.WatchHealth(ctx, &pb.WatchHealthRequest{})
	if err != nil {
		return err
	}
	if !has(c.Description, pb.Capability_CAPABILITY_HEALTH) {
		_, err := w.Recv()
		return want("WatchHealth without the capability", err, codes.Unimplemented)
	}
	ill := map[string]pb.Health{}
	for _, d := range s.GetDevices() {
		if d.GetHealth() != pb.Health_HEALTH_HEALTHY {
			ill[d.GetId()] = d.GetHealth()
		}
	}
	for n := len(ill); n > 0; n-- {
		e, err := w.Recv()
		if err != nil {
			return err
		}
		if ill[e.GetDeviceId()] != e.GetHealth() || e.GetUnixMs() == 0 {
			return fmt.Errorf("event %v does not go with the snapshot", e)
		}
	}
	return nil
}
