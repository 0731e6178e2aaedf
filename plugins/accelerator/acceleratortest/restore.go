package acceleratortest

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var restoreChecks = []Check{
	{"kill", "kill -9 between Prepare and Unprepare loses nothing", kill},
	{"restore-unknown", "Restore of a device that is gone is a problem, not an error", restoreUnknown},
	{"restore-none", "Restore with nothing alive removes what a killed process left behind", restoreNone},
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
	if _, _, err := b.ready(ctx); err != nil { // no allocation is live any more
		return err
	}
	after, err := files(b.state())
	if err == nil && after != clean {
		err = fmt.Errorf("left behind: %q", after)
	}
	return err
}
