package acceleratortest

import (
	"context"
	"fmt"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

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
