package accelerator

import (
	"cmp"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Ledger records the allocations of this plugin process, so that Prepare can be repeated. The host
// is the authority: Restore fills the ledger again after a restart. The zero value is empty and
// ready to use.
type Ledger struct {
	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	mu     sync.Mutex // serializes Prepare calls for one allocation
	allocs []*pb.Allocation
	answer *pb.PrepareResponse
}

// Prepare returns the first response again if a request is repeated, and an error if its id was
// used with other devices. Otherwise it calls prepare, whose error is not recorded.
func (l *Ledger) Prepare(req *pb.PrepareRequest, prepare func() (*pb.PrepareResponse, error)) (*pb.PrepareResponse, error) {
	id := req.GetAllocationId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "allocation_id: must be set")
	}
	e := l.entry(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	want := sorted(req.GetAllocations())
	if e.allocs != nil && !slices.EqualFunc(e.allocs, want, same) {
		return nil, status.Errorf(codes.AlreadyExists, "allocation_id: %s is prepared with other devices", id)
	}
	if e.answer != nil {
		return e.answer, nil
	}
	answer, err := prepare()
	if err != nil {
		if e.allocs == nil {
			l.Forget(id)
		}
		return nil, err
	}
	e.allocs, e.answer = want, answer
	return answer, nil
}

// Holds reports whether an allocation is prepared, by this process or an earlier one.
func (l *Ledger) Holds(id string) bool {
	l.mu.Lock()
	e := l.entries[id]
	l.mu.Unlock()
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.allocs != nil
}

// Restore replaces the contents of the ledger by the live allocations of the host.
func (l *Ledger) Restore(live []*pb.LiveAllocation) {
	entries := make(map[string]*entry, len(live))
	for _, a := range live {
		entries[a.GetAllocationId()] = &entry{allocs: sorted(a.GetAllocations())}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = entries
}

// Forget removes an allocation if it exists.
func (l *Ledger) Forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, id)
}

func (l *Ledger) entry(id string) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[string]*entry{}
	}
	e := l.entries[id]
	if e == nil {
		e = &entry{}
		l.entries[id] = e
	}
	return e
}

func sorted(a []*pb.Allocation) []*pb.Allocation {
	a = slices.Clone(a)
	slices.SortFunc(a, func(x, y *pb.Allocation) int {
		return cmp.Or(cmp.Compare(x.GetSlot(), y.GetSlot()), cmp.Compare(x.GetDeviceId(), y.GetDeviceId()))
	})
	return a
}

func same(x, y *pb.Allocation) bool { return proto.Equal(x, y) }

// Grant is one allocation of a request with its device and parsed amount.
type Grant struct {
	Device *pb.Device
	Slot   *pb.SlotType
	Amount int64 // in the slot's smallest step
	// Part is the fraction of the device's capacity of this slot, in (0, 1].
	Part float64
}

// Grants looks up a request's allocations in a snapshot and returns them in a stable order. It
// returns the errors that the contract prescribes.
func Grants(s *pb.DeviceSnapshot, allocs []*pb.Allocation) ([]Grant, error) {
	if s == nil {
		return nil, errNotConfigured
	}
	if len(allocs) == 0 {
		return nil, status.Error(codes.InvalidArgument, "allocations: none given")
	}
	var out []Grant
	ways := map[string]string{}
	for _, a := range sorted(allocs) {
		g, err := grant(s, a)
		if err != nil {
			return nil, err
		}
		if way, ok := ways[a.GetDeviceId()]; ok {
			return nil, status.Errorf(codes.InvalidArgument, "allocations: %s is allocated as %s and as %s", a.GetDeviceId(), way, a.GetSlot())
		}
		ways[a.GetDeviceId()] = a.GetSlot()
		out = append(out, g)
	}
	if err := allowed(out); err != nil {
		return nil, err
	}
	return out, nil
}

// allowed checks slots that can be allocated only in certain amounts.
func allowed(grants []Grant) error {
	sum := map[*pb.SlotType]int64{}
	for _, g := range grants {
		sum[g.Slot] += g.Amount
	}
	for slot, n := range sum {
		counts := slot.GetAllowedCounts()
		if len(counts) > 0 && !slices.ContainsFunc(counts, func(c uint32) bool { return int64(c) == n }) {
			return status.Errorf(codes.InvalidArgument, "allocations: %d of %s, which comes in %v", n, slot.GetName(), counts)
		}
	}
	return nil
}

func grant(s *pb.DeviceSnapshot, a *pb.Allocation) (Grant, error) {
	bad := func(c codes.Code, format string, args ...any) (Grant, error) {
		return Grant{}, status.Errorf(c, format, args...)
	}
	d := find(s.GetDevices(), a.GetDeviceId(), (*pb.Device).GetId)
	if d == nil {
		return bad(codes.NotFound, "device_id: device %.140q does not exist", a.GetDeviceId())
	}
	if !d.GetAllocatable() {
		return bad(codes.FailedPrecondition, "device_id: %s is not allocatable: %v", d.GetId(), d.GetRejectReasons())
	}
	slot := find(s.GetSlots(), a.GetSlot(), (*pb.SlotType).GetName)
	if slot == nil || d.GetCapacity()[a.GetSlot()] == "" {
		return bad(codes.InvalidArgument, "slot: %s has no %.80q", d.GetId(), a.GetSlot())
	}
	have, err := ParseAmount(slot.GetKind(), d.GetCapacity()[slot.GetName()])
	if err != nil {
		return bad(codes.Internal, "capacity of %s: %v", d.GetId(), err)
	}
	n, err := ParseAmount(slot.GetKind(), a.GetAmount())
	if err != nil {
		return bad(codes.InvalidArgument, "amount: %v", err)
	}
	step := int64(1)
	if q := slot.GetQuantum(); q != "" {
		if step, err = ParseAmount(slot.GetKind(), q); err != nil {
			return bad(codes.Internal, "quantum of %s: %v", slot.GetName(), err)
		}
	}
	if n == 0 || n > have || n%step != 0 && n != have {
		return bad(codes.InvalidArgument, "amount: %s of %s on %s, which has %s in steps of %s", a.GetAmount(),
			slot.GetName(), d.GetId(), d.GetCapacity()[slot.GetName()], FormatAmount(slot.GetKind(), step))
	}
	return Grant{Device: d, Slot: slot, Amount: n, Part: float64(n) / float64(have)}, nil
}

func find[T any](list []*T, name string, of func(*T) string) *T {
	for _, x := range list {
		if of(x) == name {
			return x
		}
	}
	return nil
}

// RestoreProblems returns the live allocations that the snapshot no longer covers, for the response
// to Restore.
func RestoreProblems(s *pb.DeviceSnapshot, live []*pb.LiveAllocation) []*pb.RestoreProblem {
	var out []*pb.RestoreProblem
	for _, l := range live {
		for _, a := range l.GetAllocations() {
			if _, err := grant(s, a); err != nil {
				out = append(out, &pb.RestoreProblem{
					AllocationId: l.GetAllocationId(), DeviceId: a.GetDeviceId(), Message: status.Convert(err).Message(),
				})
			}
		}
	}
	return out
}
