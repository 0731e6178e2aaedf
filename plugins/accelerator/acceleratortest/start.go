package acceleratortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var startChecks = []Check{
	{"cookie", "started by hand, the program explains itself and ends with an error", cookie},
	{"version", "a host that speaks only another contract is refused, not crashed", version},
	{"negotiation", "of several versions that a host offers the common one is taken", negotiation},
	{"describe", "the description keeps the rules and is the same every time", describe},
	{"display", "every slot begins with the key or a family and has all that a page shows", display},
	{"tls", "it serves with mutual TLS, or plainly says that it cannot", mutualTLS},
	{"unconfigured", "calls before Configure answer FAILED_PRECONDITION", unconfigured},
	{"preflight", "Preflight answers with named checks", preflight},
}

func cookie(ctx context.Context, b *bench) error { return b.program().Cookie(ctx) }

func version(_ context.Context, b *bench) error { return b.program().Version() }

func negotiation(_ context.Context, b *bench) error { return b.program().Negotiation() }

func describe(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx) // validates the description
	if err != nil {
		return err
	}
	again, err := c.Describe(ctx, &pb.DescribeRequest{AgentVersion: "another", NodeName: "another", Incarnation: "2"})
	if err != nil {
		return err
	}
	if !proto.Equal(again, c.Description) {
		return errors.New("a second Describe differs from the first")
	}
	return nil
}

// display checks texts that Launch does not require but people do, such as the descriptions of
// slots.
func display(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	for _, s := range c.Description.GetSlots() {
		for what, text := range map[string]string{"display_name": s.GetDisplayName(), "description": s.GetDescription(), "unit": s.GetUnit(), "icon": s.GetIcon()} {
			if strings.TrimSpace(text) == "" {
				return fmt.Errorf("slot %s has no %s", s.GetName(), what)
			}
		}
		for _, x := range s.GetExclusiveWith() {
			if !slices.ContainsFunc(c.Description.GetSlots(), func(o *pb.SlotType) bool { return overlap(x, o.GetName()) }) {
				return fmt.Errorf("slot %s excludes %s, which is not described", s.GetName(), x)
			}
		}
	}
	return nil
}

// overlap reports whether a name that may end in * and one that may contain a * can match the same
// text.
func overlap(x, y string) bool {
	x, _, open := strings.Cut(x, "*")
	y, _, pattern := strings.Cut(y, "*")
	return x == y || (open || pattern) && (strings.HasPrefix(x, y) || strings.HasPrefix(y, x))
}

func unconfigured(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	a := &pb.Allocation{Slot: c.Description.GetSlots()[0].GetName(), DeviceId: "x", Amount: "1"}
	_, err = c.Prepare(ctx, prepare("early", b.dir, a))
	if err := want("Prepare", err, codes.FailedPrecondition); err != nil {
		return err
	}
	w, err := c.WatchDevices(ctx, &pb.WatchDevicesRequest{})
	if err != nil {
		return err
	}
	_, err = w.Recv()
	return want("WatchDevices", err, codes.FailedPrecondition)
}

func preflight(ctx context.Context, b *bench) error {
	c, _, err := b.ready(ctx)
	if err != nil {
		return err
	}
	p, err := c.Preflight(ctx, &pb.PreflightRequest{})
	if err != nil {
		return err
	}
	if len(p.GetChecks()) == 0 {
		return errors.New("no checks")
	}
	for _, k := range p.GetChecks() {
		if k.GetName() == "" || !k.GetOk() && k.GetDetail() == "" {
			return fmt.Errorf("check %q has no name, or failed without detail", k.GetName())
		}
	}
	return nil
}
