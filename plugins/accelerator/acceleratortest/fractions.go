package acceleratortest

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

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
		return suite.Skip("no device has parts to give")
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
		return fmt.Errorf("a container with half of the device is told the same as one with all of it: %v", some)
	}
	if step > 1 {
		_, err = ask(part + 1)
		return want("an amount between two steps", err, codes.InvalidArgument)
	}
	return nil
}
