package driver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

var slot = &pb.SlotType{Name: "acme.device", Kind: pb.SlotType_COUNT, DisplayName: "ACME", Unit: "card"}

// acme is a driver whose machine the test controls.
type acme struct {
	mu    sync.Mutex
	scan  func() (*pb.DeviceSnapshot, error)
	edit  func() error
	undo  []string
	swept bool
	taken int // number of resumed allocations
}

func (a *acme) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{Key: "acme", Vendor: "ACME", PluginVersion: "1", Slots: []*pb.SlotType{slot, {Name: "acme.device:*", Kind: pb.SlotType_UNIQUE, DisplayName: "half", Unit: "card"}}}
}

func (a *acme) Open(_ *driver.Host, config []byte) (driver.Machine, error) {
	return a, accelerator.DecodeConfig(config, &struct{}{})
}

func (a *acme) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.scan()
}

func (a *acme) Edit(context.Context, *driver.Request) (*pb.PrepareResponse, error) {
	return &pb.PrepareResponse{Edits: &pb.ContainerEdits{}}, a.edit()
}

func (a *acme) Undo(_ context.Context, id string, _ []byte) error {
	a.undo = append(a.undo, id)
	return nil
}

func (a *acme) Resume(_ context.Context, live []*pb.LiveAllocation) []*pb.RestoreProblem {
	if a.taken = len(live); a.swept {
		return nil
	}
	return []*pb.RestoreProblem{{AllocationId: live[0].AllocationId, Message: "its server does not start"}}
}

func (a *acme) Sweep(context.Context, []*pb.LiveAllocation) ([]string, error) {
	a.swept = true
	return []string{"a leak"}, nil
}

func card(id string) *pb.Device {
	return &pb.Device{Id: id, Model: "card", Health: pb.Health_HEALTH_HEALTHY, Allocatable: true, Capacity: map[string]string{slot.Name: "1"}}
}

func cards(ids ...string) func() (*pb.DeviceSnapshot, error) {
	return func() (*pb.DeviceSnapshot, error) {
		s := &pb.DeviceSnapshot{Slots: []*pb.SlotType{slot}}
		for _, id := range ids {
			s.Devices = append(s.Devices, card(id))
		}
		return s, nil
	}
}

// watcher receives the first snapshot.
type watcher struct {
	pb.Accelerator_WatchDevicesServer
	ctx  context.Context
	stop context.CancelFunc
	got  *pb.DeviceSnapshot
}

func (w *watcher) Context() context.Context { return w.ctx }
func (w *watcher) Send(s *pb.DeviceSnapshot) error {
	w.got = s
	w.stop()
	return nil
}

// shown configures the plugin again and returns its next snapshot.
func shown(t *testing.T, p *driver.Plugin, req *pb.ConfigureRequest) *pb.DeviceSnapshot {
	t.Helper()
	if _, err := p.Configure(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	w := &watcher{}
	w.ctx, w.stop = context.WithCancel(t.Context())
	if err := p.WatchDevices(nil, w); err != nil {
		t.Fatal(err)
	}
	if err := accelerator.Validate((&acme{}).Describe(), w.got); err != nil {
		t.Fatalf("snapshot breaks the rules: %v", err)
	}
	return w.got
}

func states(s *pb.DeviceSnapshot) (list []string) {
	for _, d := range s.GetDevices() {
		state := "good"
		if !d.GetAllocatable() {
			state = strings.Join(d.GetRejectReasons(), "; ")
		}
		list = append(list, d.GetId()+": "+state)
	}
	return list
}

func TestOnlyTheBrokenDeviceIsRejected(t *testing.T) {
	a := &acme{scan: func() (*pb.DeviceSnapshot, error) {
		s, _ := cards("a", "b", "b", "c", "bad id\n", "d")()
		s.Devices[3].Capacity[slot.Name] = "-1"
		s.Devices[3].PciAddress = "0000:01:00.0"
		s.Devices[5].ParentId = "nowhere"
		s.Links = []*pb.Link{{A: "a", B: "gone", Distance: 1}, {A: "a", B: "b", Distance: 1}}
		return s, nil
	}}
	s := shown(t, driver.New(a), &pb.ConfigureRequest{})
	got := states(s)
	for i, want := range []string{"a: good", "b: 2 devices have the id b", "b:2: 2 devices have the id b", "0000:01:00.0: ", "broken-4: ", "d: the device that it is a partition of does not exist"} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) || want != "a: good" && strings.HasSuffix(got[i], ": good") {
			t.Errorf("device %d is %q, want %q", i, got, want)
		}
	}
	if len(s.Links) != 1 {
		t.Errorf("links are %v", s.Links)
	}
}

func TestWhenNobodyCanLookNothingIsGivenAway(t *testing.T) {
	a := &acme{scan: cards("a", "b")}
	p := driver.New(a)
	if got := states(shown(t, p, &pb.ConfigureRequest{DeviceMask: []string{"b"}})); !slices.Equal(got, []string{"a: good"}) {
		t.Fatalf("shows %q", got)
	}
	set := func(scan func() (*pb.DeviceSnapshot, error)) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.scan = scan
	}
	set(func() (*pb.DeviceSnapshot, error) { return nil, errors.New("acme-smi does not end") })
	if got := states(shown(t, p, &pb.ConfigureRequest{})); !slices.Equal(got, []string{"a: acme-smi does not end"}) {
		t.Errorf("shows %q", got)
	}
	set(func() (*pb.DeviceSnapshot, error) { panic("index out of range") })
	if got := states(shown(t, p, &pb.ConfigureRequest{})); len(got) != 1 || !strings.HasPrefix(got[0], "a: scanning the hardware failed: index out of range") {
		t.Errorf("shows %q", got)
	}
	set(cards("a", "b"))
	if got := states(shown(t, p, &pb.ConfigureRequest{})); !slices.Equal(got, []string{"a: good", "b: good"}) {
		t.Errorf("shows %q", got)
	}
}

// If the first scan fails, there is no device to report the reason with.
func TestAFirstLookThatFailsSaysWhy(t *testing.T) {
	a := &acme{scan: func() (*pb.DeviceSnapshot, error) { return nil, errors.New("acme-smi prints no JSON") }}
	p := driver.New(a)
	s := shown(t, p, &pb.ConfigureRequest{})
	if l := s.GetLook(); len(s.Devices) != 0 || len(s.Slots) != 1 || l.GetState() != pb.Look_FAILED || l.GetMessage() != "acme-smi prints no JSON" {
		t.Errorf("shows %v", s)
	}
	r, err := p.Preflight(t.Context(), &pb.PreflightRequest{})
	if err != nil || len(r.Checks) == 0 || r.Checks[0].Ok || r.Checks[0].Detail != "acme-smi prints no JSON" {
		t.Errorf("preflight: %v, %v", r, err)
	}
	a.mu.Lock()
	a.scan = cards("a")
	a.mu.Unlock()
	if s = shown(t, p, &pb.ConfigureRequest{}); s.GetLook().GetMessage() != "" || len(s.Devices) != 1 {
		t.Errorf("later: %v", s)
	}
}

func TestALookThatDoesNotEndHangs(t *testing.T) {
	end := make(chan struct{})
	a := &acme{scan: func() (*pb.DeviceSnapshot, error) { <-end; return cards("a")() }}
	p := driver.New(a)
	if l := shown(t, p, &pb.ConfigureRequest{}).GetLook(); l.GetState() != pb.Look_HANGING {
		t.Errorf("look: %v", l)
	}
	close(end)
}

func TestDevicesBeyondTheLimitAreSaid(t *testing.T) {
	var ids []string
	for i := range accelerator.MaxDevices + 3 {
		ids = append(ids, fmt.Sprint("card-", i))
	}
	s := shown(t, driver.New(&acme{scan: cards(ids...)}), &pb.ConfigureRequest{})
	if l := s.GetLook(); len(s.Devices) != accelerator.MaxDevices || l.GetState() != pb.Look_PARTIAL || l.GetMessage() != "1027 devices, of which the first 1024 are shown" {
		t.Errorf("%d devices, look %v", len(s.Devices), l)
	}
}

// A health event without a reason would be useless to people.
func TestWhatIsNotHealthySaysWhy(t *testing.T) {
	scan := func() (*pb.DeviceSnapshot, error) {
		s, _ := cards("a", "b")()
		s.Devices[0].Health = pb.Health_HEALTH_UNKNOWN
		driver.Reject(s.Devices[0], "no driver serves it")
		driver.Reject(s.Devices[1], "it is too old")
		return s, nil
	}
	s := shown(t, driver.New(&acme{scan: scan}), &pb.ConfigureRequest{})
	if a, b := s.Devices[0].HealthMessage, s.Devices[1].HealthMessage; a != "no driver serves it" || b != "" {
		t.Errorf("%q and %q", a, b)
	}
}

func TestMaskedDevicesLeaveNothing(t *testing.T) {
	const part = "acme.device:half"
	scan := func() (*pb.DeviceSnapshot, error) {
		s, _ := cards("a", "b")()
		for _, d := range s.Devices {
			s.Counters = append(s.Counters, &pb.CounterSet{Name: d.Id, Counters: map[string]string{"halves": "2"}})
			half := card(d.Id + "/0")
			half.ParentId, half.Capacity = d.Id, map[string]string{part + d.Id: "1"}
			half.Consumes = []*pb.CounterUse{{Set: d.Id, Amounts: map[string]string{"halves": "1"}}}
			s.Devices = append(s.Devices, half)
			s.Slots = append(s.Slots, &pb.SlotType{Name: part + d.Id, Kind: pb.SlotType_UNIQUE, DisplayName: "half", Unit: "card"})
		}
		return s, nil
	}
	s := shown(t, driver.New(&acme{scan: scan}), &pb.ConfigureRequest{DeviceMask: []string{"a"}})
	if got := states(s); !slices.Equal(got, []string{"b: good", "b/0: good"}) {
		t.Errorf("shows %q", got)
	}
	if len(s.Slots) != 2 || s.Slots[1].Name != part+"b" || len(s.Counters) != 1 || s.Counters[0].Name != "b" {
		t.Errorf("slots %v, counters %v", s.Slots, s.Counters)
	}
	if s = shown(t, driver.New(&acme{scan: scan}), &pb.ConfigureRequest{DeviceMask: []string{"a", "b"}}); len(s.Slots) != 1 || len(s.Devices) != 0 {
		t.Errorf("without devices: %v", s)
	}
}

func TestPrepareAndBack(t *testing.T) {
	a := &acme{scan: cards("a"), edit: func() error { return errors.New("node is gone") }}
	p := driver.New(a)
	ask := &pb.PrepareRequest{AllocationId: "x", Allocations: []*pb.Allocation{{Slot: slot.Name, DeviceId: "a", Amount: "1"}}}
	if _, err := p.Prepare(t.Context(), ask); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("before Configure: %v", err)
	}
	shown(t, p, &pb.ConfigureRequest{})
	if _, err := p.Prepare(t.Context(), ask); status.Code(err) != codes.FailedPrecondition || !slices.Equal(a.undo, []string{"x"}) {
		t.Errorf("failing: %v, undone %q", err, a.undo)
	}
	a.edit = func() error { return nil }
	if _, err := p.Prepare(t.Context(), ask); err != nil {
		t.Error(err)
	}
	r, err := p.Restore(t.Context(), &pb.RestoreRequest{Live: []*pb.LiveAllocation{{AllocationId: "y", Allocations: []*pb.Allocation{{Slot: slot.Name, DeviceId: "z", Amount: "1"}}}}})
	if err != nil || len(r.Problems) != 2 || !slices.Equal(r.LeaksRemoved, []string{"a leak"}) || a.taken != 1 {
		t.Errorf("restore: %v, %v", r, err)
	}
	a.edit = func() error { return errors.New("node is gone") }
	ask.AllocationId = "y"
	ask.Allocations[0].DeviceId = "a"
	r, err = p.Restore(t.Context(), &pb.RestoreRequest{Live: []*pb.LiveAllocation{{AllocationId: "y", Allocations: ask.Allocations}}})
	if err != nil || len(r.Problems) != 0 {
		t.Errorf("restore: %v, %v", r, err)
	}
	if _, err := p.Prepare(t.Context(), ask); err == nil || slices.Contains(a.undo, "y") {
		t.Errorf("a second Prepare for a live container: %v, undone %q", err, a.undo)
	}
	if _, err := p.Unprepare(t.Context(), &pb.UnprepareRequest{AllocationId: "never"}); err != nil {
		t.Error(err)
	}
	if _, err := p.Configure(t.Context(), &pb.ConfigureRequest{ConfigJson: []byte(`{"x":1}`)}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("bad settings: %v", err)
	}
}
