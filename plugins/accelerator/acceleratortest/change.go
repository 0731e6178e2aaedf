package acceleratortest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

var changeChecks = []Check{
	{"unplug", "a removed device leaves the snapshot, is LOST, and is refused", unplug},
	{"sick", "a device that becomes unhealthy is unhealthy in the snapshot and in a health event", sick},
	{"garbage", "a corrupt file affects one device, with a reason, until the file is restored", garbage},
	{"program-hangs", "a program or server that hangs blocks no call and leaves no process behind", programHangs},
	{"program-fails", "the plugin survives a program or server that fails or prints invalid output", programFails},
}

// unplug applies the fixture's changes that remove devices.
func unplug(ctx context.Context, b *bench) error {
	return b.changes(ctx, "devices to disappear", func(o fixture.Outcome) bool { return len(o.Gone) > 0 })
}

// sick applies the fixture's changes that alter the health of devices.
func sick(ctx context.Context, b *bench) error {
	return b.changes(ctx, "devices to have another health", func(o fixture.Outcome) bool { return len(o.Gone) == 0 && len(o.Health) > 0 })
}

func (b *bench) changes(ctx context.Context, what string, wanted func(fixture.Outcome) bool) error {
	if b.site.machine == nil {
		return suite.Skip("no fixture is given")
	}
	all, slowest := b.site.machine.Changes, time.Duration(0)
	tried := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !wanted(all[name].Expect) {
			continue
		}
		tried++
		took, err := b.change(ctx, tried, name, all[name].Expect)
		if err != nil {
			return fmt.Errorf("change %s: %w", name, err)
		}
		slowest = max(slowest, took)
	}
	if tried == 0 {
		return suite.Skip("no change of the fixture expects " + what)
	}
	return suite.Note(fmt.Sprintf("after %.1f s at most", slowest.Seconds()))
}

// change applies one change to a new machine and waits until the plugin reports the expected
// result. It returns the duration.
func (b *bench) change(ctx context.Context, n int, name string, expect fixture.Outcome) (time.Duration, error) {
	if err := b.ownMachine(fmt.Sprint("machine ", n)); err != nil {
		return 0, err
	}
	c, s, err := b.ready(ctx)
	if err != nil {
		return 0, err
	}
	want := map[string]pb.Health{}
	for _, id := range expect.Gone {
		want[id] = pb.Health_HEALTH_LOST
	}
	for id, h := range expect.Health {
		want[id] = pb.Health(pb.Health_value["HEALTH_"+h])
	}
	for id := range want {
		if device(s, id) == nil {
			return 0, fmt.Errorf("the fixture names %s, which is not among %s", id, names(s))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	devices, err := c.WatchDevices(ctx, &pb.WatchDevicesRequest{})
	if err != nil {
		return 0, err
	}
	health, err := c.WatchHealth(ctx, &pb.WatchHealthRequest{})
	if err != nil {
		return 0, err
	}
	if _, err := devices.Recv(); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := b.tree.Change(name); err != nil {
		return 0, err
	}
	if err := awaitSnapshot(c, devices, expect, want); err != nil {
		return 0, err
	}
	if has(c.Description, pb.Capability_CAPABILITY_HEALTH) {
		if err := awaitHealth(health, want); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	return took, refused(ctx, b, c, s, expect.Gone)
}

func awaitSnapshot(c *accelerator.Client, w pb.Accelerator_WatchDevicesClient, expect fixture.Outcome, want map[string]pb.Health) error {
	var last *pb.DeviceSnapshot
	for {
		s, err := w.Recv()
		if err != nil {
			return fmt.Errorf("the snapshot never showed the change; the last one is %v: %w", last, err)
		}
		if err := accelerator.Validate(c.Description, s); err != nil {
			return err
		}
		last = s
		if reports(s, expect, want) {
			return nil
		}
	}
}

// reports reports whether a snapshot contains everything that is expected.
func reports(s *pb.DeviceSnapshot, expect fixture.Outcome, want map[string]pb.Health) bool {
	for _, id := range expect.Gone {
		if device(s, id) != nil {
			return false
		}
	}
	for id := range expect.Health {
		d := device(s, id)
		if want[id] == pb.Health_HEALTH_LOST && d == nil {
			continue
		}
		if d.GetHealth() != want[id] || want[id] == pb.Health_HEALTH_UNHEALTHY && d.GetAllocatable() {
			return false
		}
	}
	return true
}

func awaitHealth(w pb.Accelerator_WatchHealthClient, want map[string]pb.Health) error {
	open := maps.Clone(want)
	for len(open) > 0 {
		e, err := w.Recv()
		if err != nil {
			return fmt.Errorf("no health event reported %v: %w", open, err)
		}
		if h, ok := open[e.GetDeviceId()]; ok && h == e.GetHealth() {
			delete(open, e.GetDeviceId())
		}
	}
	return nil
}

// refused checks that requests for devices that were removed after they were selected are refused.
func refused(ctx context.Context, b *bench, c *accelerator.Client, before *pb.DeviceSnapshot, gone []string) error {
	for _, id := range gone {
		a := all(before, device(before, id))
		if a == nil {
			continue
		}
		_, err := c.Prepare(ctx, prepare("late", b.dir, a))
		if code := status.Code(err); code != codes.NotFound && code != codes.FailedPrecondition {
			return fmt.Errorf("prepare %s, which was removed: %v, want code %v", id, err, codes.NotFound)
		}
	}
	return nil
}

var restoreChecks = []Check{
	{"kill", "kill -9 between Prepare and Unprepare loses nothing", kill},
	{"restore-unknown", "Restore of a removed device is a problem, not an error", restoreUnknown},
	{"restore-none", "Restore without live allocations removes the remains of a killed process", restoreNone},
}

func kill(ctx context.Context, b *bench) error {
	c, s, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	clean, err := files(b.state())
	if err != nil {
		return err
	}
	d := usable(s)
	req := prepare("one", b.dir, all(s, d[0]))
	before, err := c.Prepare(ctx, req)
	if err != nil {
		return err
	}
	if err := syscall.Kill(c.Pid(), syscall.SIGKILL); err != nil {
		return err
	}
	<-c.Done()
	c, _, err = b.ready(ctx, &pb.LiveAllocation{AllocationId: "one", Allocations: req.Allocations, State: before.GetState()})
	if err != nil {
		return fmt.Errorf("after the kill: %w", err)
	}
	if o := other(s, d, req.Allocations[0]); o != nil {
		_, err = c.Prepare(ctx, prepare("one", b.dir, o))
		if err := want("a restored id for other devices", err, codes.AlreadyExists); err != nil {
			return err
		}
	}
	after, err := c.Prepare(ctx, req)
	if err != nil {
		return fmt.Errorf("prepare after the kill: %w", err)
	}
	if !proto.Equal(before, after) {
		return fmt.Errorf("the answer after the kill differs:\n%v\n%v", before, after)
	}
	if _, err = c.Unprepare(ctx, &pb.UnprepareRequest{AllocationId: "one", State: before.GetState()}); err != nil {
		return err
	}
	left, err := files(b.state())
	if err == nil && left != clean {
		err = fmt.Errorf("left in the state directory: %q, it was %q", left, clean)
	}
	return err
}

func restoreUnknown(ctx context.Context, b *bench) error {
	c, _, err := b.ready(ctx)
	if err != nil {
		return err
	}
	slot := c.Description.GetSlots()[0].GetName()
	r, err := c.Restore(ctx, &pb.RestoreRequest{Live: []*pb.LiveAllocation{{
		AllocationId: "old", Allocations: []*pb.Allocation{{Slot: slot, DeviceId: "no-such-device", Amount: "1"}},
	}}})
	if err != nil {
		return err
	}
	for _, p := range r.GetProblems() {
		if p.GetAllocationId() == "old" && p.GetMessage() != "" {
			_, err := c.Unprepare(ctx, &pb.UnprepareRequest{AllocationId: "old"})
			return err
		}
	}
	return errors.New("the missing device was not reported")
}

func restoreNone(ctx context.Context, b *bench) error {
	c, s, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	clean, err := files(b.state())
	if err != nil {
		return err
	}
	if _, err := c.Prepare(ctx, prepare("one", b.dir, all(s, usable(s)[0]))); err != nil {
		return err
	}
	if err := syscall.Kill(c.Pid(), syscall.SIGKILL); err != nil {
		return err
	}
	<-c.Done()
	if _, _, err := b.ready(ctx); err != nil { // no allocation is live
		return err
	}
	after, err := files(b.state())
	if err == nil && after != clean {
		err = fmt.Errorf("left behind: %q", after)
	}
	return err
}
