package scheduler

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// members are n sessions of an array of which two run at once at most.
func members(n int) (map[uuid.UUID]*live, []uuid.UUID) {
	rows, ids, array := make(map[uuid.UUID]*live, n), make([]uuid.UUID, n), uuid.New()
	for i := range n {
		ids[i] = uuid.New()
		rows[ids[i]] = &live{
			status: lifecycle.Pending, attempt: 1, array: seat{array: array, index: i, name: "sweep", most: 2},
			request: plan.Request{SessionID: ids[i], Kernels: []plan.KernelRequest{{ID: uuid.New(), Slots: resource.Slots{"cpu": 1000}}}},
		}
	}
	return rows, ids
}

func TestTheModelHoldsBackMembersOverTheLimit(t *testing.T) {
	rows, ids := members(6)
	rows[ids[4]].status, rows[ids[4]].array = lifecycle.Running, seat{array: rows[ids[4]].array.array, index: 4}
	m := newModel(time.Now())
	m.putAll(rows)
	queued := func(want ...int) {
		t.Helper()
		if len(m.snap.Pending) != len(want) {
			t.Fatalf("%d members are queued, want %v", len(m.snap.Pending), want)
		}
		for _, i := range want {
			if _, ok := m.pending[ids[i]]; !ok {
				t.Errorf("member %d is not queued", i)
			}
		}
	}
	queued(0) // member 4 runs already
	if held := m.takeParked(); len(held) != 4 || held[0].Waiting.Stage != "held" {
		t.Errorf("held back: %+v", held)
	}
	m.placed(ids[0], nil)
	queued()
	m.put(ids[4], nil)
	queued(1)
	m.put(ids[2], nil) // the member is cancelled while it is held back
	m.put(ids[0], nil)
	queued(1, 3)
	again := *rows[ids[1]]
	again.attempt = 2
	m.put(ids[1], &again) // keeps its place during retries
	queued(1, 3)
	for _, i := range []int{1, 3, 5} {
		m.put(ids[i], nil)
	}
	if queued(); len(m.arrays) != 0 || len(m.members) != 0 {
		t.Errorf("the model keeps %d arrays and %d members", len(m.arrays), len(m.members))
	}
}

// BenchmarkArrayMemberEnds measures a pass while an array of 10,000 members waits, of which two run
// at once: one member ends, and the next one is queued and decided.
func BenchmarkArrayMemberEnds(b *testing.B) {
	rows, _ := members(10_000)
	m := newModel(time.Now())
	m.putAll(rows)
	m.setSettings(&plan.Snapshot{Now: time.Now(), Groups: []plan.Group{{Name: "default"}}})
	var p plan.Planner
	p.Decide(m.snap, m.take())
	for b.Loop() {
		id := m.snap.Pending[0].SessionID
		row := m.live[id]
		m.put(id, nil)
		p.Decide(m.snap, m.take())
		b.StopTimer() // the member waits again, with the highest index
		row.array.index = len(rows)
		m.put(id, row)
		m.takeParked()
		b.StartTimer()
	}
}
