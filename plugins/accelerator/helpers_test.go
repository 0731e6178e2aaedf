package accelerator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

func TestFeed(t *testing.T) {
	var feed accelerator.Feed
	got := make(chan uint64, 10)
	ctx, cancel := context.WithCancel(t.Context())
	early := feed.Watch(ctx, func(*pb.DeviceSnapshot) error { return nil })
	if status.Code(early) != codes.FailedPrecondition {
		t.Errorf("before the first snapshot: %v", early)
	}
	feed.Set(good())
	ended := make(chan error)
	go func() {
		ended <- feed.Watch(ctx, func(s *pb.DeviceSnapshot) error { got <- s.GetRevision(); return nil })
	}()
	next := func() uint64 {
		select {
		case n := <-got:
			return n
		case <-time.After(time.Minute):
			t.Fatal("no snapshot")
			return 0
		}
	}
	if n := next(); n != 1 {
		t.Errorf("first revision %d", n)
	}
	feed.Set(good()) // equal: no watcher is notified and the number does not change
	changed := good()
	changed.Devices[0].Health = pb.Health_HEALTH_DEGRADED
	feed.Set(changed)
	if n := next(); n != 2 {
		t.Errorf("second revision %d", n)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	broken := errors.New("broken pipe")
	if err := feed.Watch(t.Context(), func(*pb.DeviceSnapshot) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestFeedHealth(t *testing.T) {
	var feed accelerator.Feed
	events := make(chan *pb.HealthEvent, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	feed.Set(good())
	go func() {
		ended <- feed.WatchHealth(ctx, func(e *pb.HealthEvent) error { events <- e; return nil })
	}()
	expect := func(want map[string]pb.Health) {
		t.Helper()
		seen := map[string]pb.Health{}
		for range want {
			select {
			case e := <-events:
				seen[e.GetDeviceId()] = e.GetHealth()
			case <-time.After(time.Minute):
				t.Fatalf("only %v of %v", seen, want)
			}
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
	}
	// a is healthy and not reported. b and a/1 have no health.
	expect(map[string]pb.Health{"b": pb.Health_HEALTH_UNKNOWN, "a/1": pb.Health_HEALTH_UNKNOWN})
	s := good()
	s.Devices = s.Devices[1:]
	feed.Set(s)
	expect(map[string]pb.Health{"a": pb.Health_HEALTH_LOST})
	feed.Set(good())
	expect(map[string]pb.Health{"a": pb.Health_HEALTH_HEALTHY})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestLedger(t *testing.T) {
	var l accelerator.Ledger
	made := 0
	prepare := func(id, dev string) (*pb.PrepareResponse, error) {
		return l.Prepare(&pb.PrepareRequest{AllocationId: id, Allocations: []*pb.Allocation{
			{DeviceId: dev, Slot: "x.device", Amount: "1"}, {DeviceId: "z", Slot: "x.device", Amount: "1"},
		}}, func() (*pb.PrepareResponse, error) {
			if dev == "bad" {
				return nil, status.Error(codes.NotFound, "bad")
			}
			made++
			return &pb.PrepareResponse{State: []byte(dev)}, nil
		})
	}
	step := func(what, id, dev string, want codes.Code, times int) {
		t.Helper()
		if _, err := prepare(id, dev); status.Code(err) != want || made != times {
			t.Errorf("%s: %v after %d, want %v after %d", what, err, made, want, times)
		}
	}
	step("first", "1", "a", codes.OK, 1)
	step("repeated", "1", "a", codes.OK, 1)
	step("other devices", "1", "b", codes.AlreadyExists, 1)
	step("failing", "2", "bad", codes.NotFound, 1)
	step("after the failure", "2", "a", codes.OK, 2)
	l.Forget("1")
	l.Forget("never seen")
	step("forgotten", "1", "b", codes.OK, 3)
	l.Restore([]*pb.LiveAllocation{{AllocationId: "9", Allocations: []*pb.Allocation{
		{DeviceId: "z", Slot: "x.device", Amount: "1"}, {DeviceId: "a", Slot: "x.device", Amount: "1"}, // any order
	}}})
	step("restored, other devices", "9", "b", codes.AlreadyExists, 3)
	step("restored", "9", "a", codes.OK, 4)
	step("not restored", "1", "c", codes.OK, 5)
	step("no id", "", "a", codes.InvalidArgument, 5)
}

func TestGrants(t *testing.T) {
	a := func(dev, slot, amount string) *pb.Allocation {
		return &pb.Allocation{DeviceId: dev, Slot: slot, Amount: amount}
	}
	s := good()
	s.Slots[1].Quantum = "0.25"
	g, err := accelerator.Grants(s, []*pb.Allocation{a("a", "x.shares", "0.75")})
	if err != nil || len(g) != 1 || g[0].Amount != 750 || g[0].Part != 0.5 || g[0].Device.GetId() != "a" {
		t.Errorf("got %+v, %v", g, err)
	}
	for name, tc := range map[string]struct {
		allocs []*pb.Allocation
		want   codes.Code
	}{
		"nothing":        {nil, codes.InvalidArgument},
		"unknown device": {[]*pb.Allocation{a("q", "x.device", "1")}, codes.NotFound},
		"rejected":       {[]*pb.Allocation{a("b", "x.device", "1")}, codes.FailedPrecondition},
		"unknown slot":   {[]*pb.Allocation{a("a", "y.device", "1")}, codes.InvalidArgument},
		"slot it lacks":  {[]*pb.Allocation{a("a/1", "x.device", "1")}, codes.InvalidArgument},
		"too much":       {[]*pb.Allocation{a("a", "x.device", "2")}, codes.InvalidArgument},
		"between steps":  {[]*pb.Allocation{a("a", "x.shares", "0.3")}, codes.InvalidArgument},
		"two ways":       {[]*pb.Allocation{a("a", "x.shares", "0.5"), a("a", "x.mem", "5")}, codes.InvalidArgument},
	} {
		if _, err := accelerator.Grants(s, tc.allocs); status.Code(err) != tc.want {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	s.Slots[0].AllowedCounts = []uint32{2, 4}
	if _, err := accelerator.Grants(s, []*pb.Allocation{a("a", "x.device", "1")}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("one of a slot with steps of two: %v", err)
	}
	s.Slots[0].AllowedCounts = []uint32{1, 4}
	if _, err := accelerator.Grants(s, []*pb.Allocation{a("a", "x.device", "1")}); err != nil {
		t.Errorf("one of a slot with steps of one: %v", err)
	}
	if _, err := accelerator.Grants(nil, nil); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("without a snapshot: %v", err)
	}
}

func TestDecodeConfig(t *testing.T) {
	type config struct {
		N int `json:"n"`
	}
	for in, want := range map[string]int{"": 7, " \n": 7, "{}": 7, `{"n": 3}`: 3} {
		c := config{N: 7}
		if err := accelerator.DecodeConfig([]byte(in), &c); err != nil || c.N != want {
			t.Errorf("%q: %d, %v, want %d", in, c.N, err, want)
		}
	}
	for _, bad := range []string{"{", "null", "[]", "3", `"x"`, `{"m": 1}`, `{"n": "x"}`, "{} {}", "{} x", "\xff"} {
		if err := accelerator.DecodeConfig([]byte(bad), &config{}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
