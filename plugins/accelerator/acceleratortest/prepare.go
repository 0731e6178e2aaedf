package acceleratortest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

var prepareChecks = []Check{
	{"prepare", "every device, in every way it can be allocated, gets valid edits", prepareEach},
	{"prepare-repeat", "the same allocation gives the same answer; other devices are refused", prepareRepeat},
	{"prepare-unknown", "missing devices and slots are refused by name", prepareUnknown},
	{"prepare-amount", "amounts that a device does not have are refused", prepareAmount},
	{"prepare-rejected", "a device that is not allocatable is refused", prepareRejected},
	{"prepare-many", "100 allocations at once all succeed", prepareMany},
	{"fractions", "half of a device gets half of its capacity, in whole steps", fractions},
	{"unified", "halves of a device under two names of one amount are not more than the device", unified},
	{"unprepare", "Unprepare can be repeated and frees the id", unprepare},
}

func prepareEach(ctx context.Context, b *bench) error {
	c, s, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	devices := usable(s)
	for _, d := range devices[:min(len(devices), 8)] {
		for slot, amount := range d.GetCapacity() {
			a := &pb.Allocation{Slot: slot, DeviceId: d.GetId(), Amount: amount}
			if _, err := once(ctx, b, c, a); err != nil {
				return fmt.Errorf("%s %s of %s: %w", amount, slot, d.GetId(), err)
			}
		}
	}
	two := together(s, 2)
	if len(two) < 2 {
		return nil
	}
	r, err := c.Prepare(ctx, prepare("two", b.dir, all(s, two[1]), all(s, two[0])))
	if err != nil {
		return fmt.Errorf("two devices: %w", err)
	}
	return answer(r, all(s, two[0]), all(s, two[1]))
}

// once prepares an allocation, checks the response and undoes it.
func once(ctx context.Context, b *bench, c *accelerator.Client, a *pb.Allocation) (*pb.PrepareResponse, error) {
	r, err := c.Prepare(ctx, prepare("one", b.dir, a))
	if err != nil {
		return nil, err
	}
	if err := answer(r, a); err != nil {
		return nil, err
	}
	_, err = c.Unprepare(ctx, &pb.UnprepareRequest{AllocationId: "one", State: r.GetState()})
	return r, err
}

// answer checks a response to Prepare against the request.
func answer(r *pb.PrepareResponse, asked ...*pb.Allocation) error {
	if err := accelerator.ValidatePrepared(r); err != nil {
		return err
	}
	if len(r.GetAttached()) != len(asked) {
		return fmt.Errorf("%d devices attached, %d asked for", len(r.GetAttached()), len(asked))
	}
	for _, a := range asked {
		found := false
		for _, d := range r.GetAttached() {
			found = found || d.GetDeviceId() == a.GetDeviceId()
		}
		if !found {
			return fmt.Errorf("device %s is not attached", a.GetDeviceId())
		}
	}
	return nil
}

func prepareRepeat(ctx context.Context, b *bench) error {
	c, s, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	d := usable(s)
	req := prepare("one", b.dir, all(s, d[0]))
	first, err := c.Prepare(ctx, req)
	if err != nil {
		return err
	}
	second, err := c.Prepare(ctx, req)
	if err != nil {
		return fmt.Errorf("again: %w", err)
	}
	if !proto.Equal(first, second) {
		return fmt.Errorf("the second answer differs:\n%v\n%v", first, second)
	}
	other := other(s, d, req.Allocations[0])
	if other == nil {
		return nil
	}
	_, err = c.Prepare(ctx, prepare("one", b.dir, other))
	return want("the same id for other devices", err, codes.AlreadyExists)
}

// other returns an allocation that differs from a.
func other(s *pb.DeviceSnapshot, d []*pb.Device, a *pb.Allocation) *pb.Allocation {
	if len(d) > 1 {
		return all(s, d[1])
	}
	for slot, amount := range d[0].GetCapacity() {
		if slot != a.GetSlot() {
			return &pb.Allocation{Slot: slot, DeviceId: d[0].GetId(), Amount: amount}
		}
	}
	return nil
}

func prepareUnknown(ctx context.Context, b *bench) error {
	c, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	slot := c.Description.GetSlots()[0].GetName()
	_, err = c.Prepare(ctx, prepare("x", b.dir, &pb.Allocation{Slot: slot, DeviceId: "no-such-device", Amount: "1"}))
	if err := want("unknown device", err, codes.NotFound); err != nil {
		return err
	}
	_, err = c.Prepare(ctx, prepare("x", b.dir))
	if err := want("no allocations", err, codes.InvalidArgument); err != nil {
		return err
	}
	d := usable(s)
	if len(d) == 0 {
		return nil
	}
	a := all(s, d[0])
	_, err = c.Prepare(ctx, prepare("", b.dir, a))
	if err := want("no allocation id", err, codes.InvalidArgument); err != nil {
		return err
	}
	_, err = c.Prepare(ctx, prepare("x", b.dir, &pb.Allocation{Slot: "other.device", DeviceId: a.DeviceId, Amount: "1"}))
	if err := want("unknown slot", err, codes.InvalidArgument); err != nil {
		return err
	}
	_, err = c.Prepare(ctx, prepare("x", b.dir, a, &pb.Allocation{Slot: slot, DeviceId: "no-such-device", Amount: "1"}))
	if err := want("one known device and one unknown", err, codes.NotFound); err != nil {
		return err
	}
	_, err = c.Prepare(ctx, prepare("x", b.dir, a)) // refused requests must not have used up the id
	return err
}

func prepareAmount(ctx context.Context, b *bench) error {
	c, s, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	d := usable(s)[0]
	for _, slot := range s.GetSlots() {
		have := d.GetCapacity()[slot.GetName()]
		if have == "" {
			continue
		}
		n, err := accelerator.ParseAmount(slot.GetKind(), have)
		if err != nil {
			return err
		}
		more := accelerator.FormatAmount(slot.GetKind(), n+1)
		bad := []string{"", "0", "-1", "NaN", "1e3", "0x1", " 1", "1.0001", "99999999999999999999", more}
		if slot.GetKind() != pb.SlotType_SHARES {
			bad = append(bad, "0.5")
		}
		for _, amount := range bad {
			_, err := c.Prepare(ctx, prepare("x", b.dir, &pb.Allocation{Slot: slot.GetName(), DeviceId: d.GetId(), Amount: amount}))
			if err := want(fmt.Sprintf("%q of %s", amount, slot.GetName()), err, codes.InvalidArgument); err != nil {
				return err
			}
		}
	}
	return nil
}

func prepareRejected(ctx context.Context, b *bench) error {
	c, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	for _, d := range s.GetDevices() {
		if !d.GetAllocatable() {
			a := &pb.Allocation{Slot: s.GetSlots()[0].GetName(), DeviceId: d.GetId(), Amount: "1"}
			_, err := c.Prepare(ctx, prepare("x", b.dir, a))
			return want("rejected device "+d.GetId(), err, codes.FailedPrecondition)
		}
	}
	return suite.Skip("every device is allocatable")
}

func prepareMany(ctx context.Context, b *bench) error {
	c, s, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	d := unrelated(s)
	errs := make([]error, 100)
	var wg sync.WaitGroup
	for i := range errs {
		// Exclusive devices are requested repeatedly with one id, all others with a hundred ids.
		id := fmt.Sprintf("many-%d", i)
		if has(c.Description, pb.Capability_CAPABILITY_SIDE_EFFECTS) {
			id = fmt.Sprintf("many-%d", i%len(d))
		}
		wg.Go(func() {
			a := all(s, d[i%len(d)])
			r, err := c.Prepare(ctx, prepare(id, b.dir, a))
			if err == nil {
				err = answer(r, a)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func unprepare(ctx context.Context, b *bench) error {
	c, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	if _, err := c.Unprepare(ctx, &pb.UnprepareRequest{AllocationId: "never seen"}); err != nil {
		return fmt.Errorf("unknown id: %w", err)
	}
	_, err = c.Unprepare(ctx, &pb.UnprepareRequest{})
	if err := want("no id", err, codes.InvalidArgument); err != nil {
		return err
	}
	d := usable(s)
	if len(d) == 0 {
		return nil
	}
	a := all(s, d[0])
	r, err := c.Prepare(ctx, prepare("one", b.dir, a))
	if err != nil {
		return err
	}
	for range 2 {
		if _, err := c.Unprepare(ctx, &pb.UnprepareRequest{AllocationId: "one", State: r.GetState()}); err != nil {
			return err
		}
	}
	if o := other(s, d, a); o != nil {
		_, err = c.Prepare(ctx, prepare("one", b.dir, o))
	}
	return err
}
