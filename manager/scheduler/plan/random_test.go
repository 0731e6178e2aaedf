package plan_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world creates random snapshots. The same seed gives the same snapshots.
type world struct {
	*rand.Rand
	ids uint64
}

func newWorld(seed uint64) *world { return &world{Rand: rand.New(rand.NewPCG(seed, 1))} }

func (w *world) id() uuid.UUID {
	w.ids++
	return uuid.NewSHA1(uuid.Nil, fmt.Append(nil, w.ids, w.Uint64()))
}

func (w *world) chance(percent int) bool { return w.IntN(100) < percent }

func pick[T any](w *world, list ...T) T { return list[w.IntN(len(list))] }

// snapshot has a few small agents, so that every resource is scarce.
func (w *world) snapshot() *plan.Snapshot {
	s := &plan.Snapshot{Now: noon, SlotTypes: w.types()}
	for i := range 1 + w.IntN(2) {
		s.Groups = append(s.Groups, plan.Group{
			ID: w.id(), Name: fmt.Sprintf("group%d", i), HoldAfter: pick(w, -1, 0, time.Minute),
		})
	}
	for i := range w.IntN(7) {
		s.Agents = append(s.Agents, w.agent(s, i))
	}
	users := []uuid.UUID{w.id(), w.id(), w.id()}
	project, domain := w.id(), w.id()
	for i := range w.IntN(14) {
		s.Pending = append(s.Pending, w.request(s, i, users, project, domain))
	}
	s.Limits = append(s.Limits, w.limit(plan.ScopeUser, users[0]), w.limit(plan.ScopeProject, project), w.limit(plan.ScopeDomain, domain))
	return s
}

// types returns the slot types that plugins declare: memory and shares of a device either exclude
// each other or are independent.
func (w *world) types() []plan.SlotType {
	if w.chance(50) {
		return []plan.SlotType{{Name: "cuda.device", ExclusiveWith: []string{"cuda.shares", "cuda.mem"}}}
	}
	return []plan.SlotType{
		{Name: "cuda.device", ExclusiveWith: []string{"cuda.*"}},
		{Name: "cuda.mem", ExclusiveWith: []string{"cuda.shares"}},
	}
}

func (w *world) agent(s *plan.Snapshot, i int) plan.Agent {
	a := plan.Agent{
		ID: w.id(), Name: fmt.Sprintf("agent%d", i), Group: pick(w, s.Groups...).ID,
		Schedulable: w.chance(90), Architecture: pick(w, "amd64", "amd64", "arm64"),
	}
	if w.chance(80) {
		a.Volumes = []string{"home", "data"}
	}
	// cpu is one device or two
	for range 1 + w.IntN(2) {
		n := int64(1000 * (1 + w.IntN(8)))
		a.Devices = append(a.Devices, plan.Device{
			ID: w.id(), Allocatable: true, Healthy: true,
			Capacity: resource.Slots{"cpu": n}, Used: resource.Slots{"cpu": w.Int64N(n + 1)},
		})
	}
	a.Devices = append(a.Devices, plan.Device{
		ID: w.id(), Allocatable: true, Healthy: true, Capacity: resource.Slots{"mem": 64}, Used: resource.Slots{"mem": w.Int64N(65)},
	})
	memory := int64(pick(w, 40, 80)) // equal within an agent
	for range w.IntN(5) {
		d := plan.Device{
			ID: w.id(), Allocatable: w.chance(95), Healthy: w.chance(90),
			Capacity: resource.Slots{"cuda.device": 1, "cuda.shares": 1000, "cuda.mem": memory},
		}
		switch w.IntN(5) {
		case 0:
			d.Used = resource.Slots{"cuda.device": 1}
		case 1:
			d.Used = resource.Slots{"cuda.shares": int64(100 * (1 + w.IntN(10)))}
		case 2:
			d.Used = resource.Slots{"cuda.mem": 1 + w.Int64N(memory)}
		}
		a.Devices = append(a.Devices, d)
	}
	if w.chance(10) {
		a.Counts = report.Counts{pick(w, "cuda.device", "cpu"): {1, 2, 1000, 2000}}
	}
	w.Shuffle(len(a.Devices), func(i, j int) { a.Devices[i], a.Devices[j] = a.Devices[j], a.Devices[i] })
	return a
}

func (w *world) request(s *plan.Snapshot, i int, users []uuid.UUID, project, domain uuid.UUID) plan.Request {
	r := plan.Request{
		SessionID: w.id(), Owner: pick(w, users...), Project: project, Domain: domain,
		Group: pick(w, s.Groups...).ID, Priority: w.IntN(3),
		Created: noon.Add(-time.Duration(w.IntN(30)) * time.Minute),
	}
	if w.chance(5) {
		r.RetryAt = noon.Add(time.Minute)
	}
	if w.chance(30) {
		r.Architecture = pick(w, "amd64", "arm64")
	}
	if w.chance(20) {
		r.Volumes = []string{"data", "home"}
	}
	if w.chance(20) && len(s.Agents) > 0 {
		r.AvoidAgents = []uuid.UUID{pick(w, s.Agents...).ID}
	}
	kernels := 1
	if w.chance(25) {
		kernels = 2 + w.IntN(3)
	}
	for range kernels {
		r.Kernels = append(r.Kernels, plan.KernelRequest{ID: w.id(), Slots: w.slots()})
	}
	return r
}

func (w *world) slots() resource.Slots {
	s := resource.Slots{"cpu": int64(500 * (1 + w.IntN(4))), "mem": 1 + w.Int64N(16)}
	switch w.IntN(7) {
	case 0:
		s["cuda.device"] = 1 + w.Int64N(3)
	case 1:
		s["cuda.shares"] = int64(100 * (1 + w.IntN(10)))
	case 2:
		s["cuda.shares"] = int64(100 * (1 + w.IntN(35)))
	case 3:
		s["cuda.shares"], s["cuda.mem"] = int64(100*(1+w.IntN(25))), 1+w.Int64N(100)
	case 4:
		s["cuda.mem"] = 1 + w.Int64N(100)
	case 5:
		if w.chance(20) {
			s["tpu.device"] = 1
		}
	}
	return s
}

func (w *world) limit(scope string, id uuid.UUID) plan.Limit {
	l := plan.Limit{Scope: scope, ID: id, Policy: scope + "-policy", Total: resource.Slots{}, Used: resource.Slots{"cpu": w.Int64N(3000)}, Sessions: w.IntN(2)}
	if w.chance(50) {
		l.Total["cpu"] = w.Int64N(20000)
	}
	if w.chance(30) {
		l.Total["cuda.shares"] = w.Int64N(5000)
	}
	if w.chance(30) {
		n := w.IntN(8)
		l.MaxSessions = &n
	}
	return l
}
