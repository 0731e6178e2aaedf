package plan_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// TestGroupsThatWantDevicesNear has two NUMA nodes of four devices each, on two boards. One device
// of each node is in use.
func TestGroupsThatWantDevicesNear(t *testing.T) {
	busy := resource.Slots{"cuda.device": 1}
	link := []report.Link{{A: "2", B: "7", Type: "nvlink", Distance: 1}}
	for name, c := range map[string]struct {
		topology plan.Topology
		links    []report.Link
		used     []resource.Slots
		ask      resource.Slots
		want     []string // nil: the session waits
		check    string
	}{
		"three on a node":         {plan.TopologyNode, nil, nil, resource.Slots{"cuda.device": 3}, []string{"a/1 cuda.device 1", "a/2 cuda.device 1", "a/3 cuda.device 1"}, ""},
		"four are on two":         {plan.TopologyNode, nil, nil, resource.Slots{"cuda.device": 4}, nil, "topology"},
		"seven are not available": {plan.TopologyNode, nil, nil, resource.Slots{"cuda.device": 7}, nil, "slot_total"},
		"any four":                {plan.TopologyPrefer, nil, nil, resource.Slots{"cuda.device": 4}, []string{"a/1 cuda.device 1", "a/2 cuda.device 1", "a/3 cuda.device 1", "a/6 cuda.device 1"}, ""},
		"a link":                  {plan.TopologyLinked, link, nil, resource.Slots{"cuda.device": 2}, []string{"a/2 cuda.device 1", "a/7 cuda.device 1"}, ""},
		"no link":                 {plan.TopologyLinked, nil, nil, resource.Slots{"cuda.device": 2}, nil, "topology"},
		"one needs none":          {plan.TopologyLinked, nil, nil, resource.Slots{"cuda.device": 1}, []string{"a/1 cuda.device 1"}, ""},
		"a small rest that is far away": {
			plan.TopologyNode, nil, []resource.Slots{nil, nil, busy, busy, {"cuda.shares": 500}, busy, busy, busy}, resource.Slots{"cuda.shares": 1500},
			[]string{"a/0 cuda.shares 1000", "a/1 cuda.shares 500"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, strategy := range plan.Strategies {
				s := newSite()
				s.Groups[0].Strategy, s.Groups[0].Topology = strategy, c.topology
				used := c.used
				if used == nil {
					used = []resource.Slots{busy, nil, nil, nil, nil, nil, nil, busy}
				}
				if len(c.links) > 0 {
					used[7] = nil
				}
				s.twoSockets("a", used...).Links = c.links
				s.ask("s", 0, c.ask)
				d := s.decide(t)["s"]
				if got := places(d); !slices.Equal(got, c.want) {
					t.Errorf("%s: on %v, want %v", strategy, got, c.want)
				}
				if c.want == nil && (d.Placed() || len(d.Waiting.Dropped) != 1 || d.Waiting.Dropped[0].Check != c.check) {
					t.Errorf("%s: %+v, want check %s", strategy, d, c.check)
				}
			}
		})
	}
}

func TestWhatIsNeverNear(t *testing.T) {
	s := newSite()
	s.Groups[0].Topology = plan.TopologyNode
	s.twoSockets("a", make([]resource.Slots, 8)...)
	want := []plan.Impossible{{
		Field: "slots", Requested: "cuda.device 5", Limit: "node",
		Reason: "No machine of the resource group has devices for all of these amounts that are as near to each other as the resource group requires.",
	}}
	for n, want := range map[int64][]plan.Impossible{4: nil, 5: want} {
		if diff := cmp.Diff(want, plan.CanEver(&s.Snapshot, s.ask("s", 0, resource.Slots{"cuda.device": n}))); diff != "" {
			t.Error(diff)
		}
	}
}

// TestRandomNearness compares the planner with a model that tries all sets of devices. The planner
// uses no set whose devices are too far from each other, and a waiting request has no set that is
// near enough.
func TestRandomNearness(t *testing.T) {
	placed, waits := 0, 0
	for seed := range uint64(1500) {
		w := newWorld(seed)
		s := newSite()
		s.Groups[0].HoldAfter = -1
		s.Groups[0].Strategy, s.Groups[0].Topology = pick(w, plan.Strategies...), plan.TopologyNode
		layout := w.Uint64()
		for i := range 1 + w.IntN(4) {
			var gpus []resource.Slots
			for range 6 {
				gpus = append(gpus, pick(w, nil, nil, resource.Slots{"cuda.device": 1}, resource.Slots{"cuda.shares": 500}))
			}
			a := s.agent(fmt.Sprint("n", i), gpus...)
			like := newWorld(layout)
			if w.chance(30) {
				like = w
			}
			nodes := []*int{nil, new(int), new(int)}
			*nodes[2] = 1
			for j := range gpus {
				a.Devices[2+j].Name, a.Devices[2+j].NUMANode = fmt.Sprint(j), pick(like, nodes[0], nodes[1], nodes[1], nodes[2], nodes[2])
			}
		}
		for i := range 6 {
			slots := resource.Slots{"cuda.device": 1 + w.Int64N(3)}
			if w.chance(50) {
				slots = resource.Slots{"cuda.shares": 500 * (1 + w.Int64N(6))}
			}
			s.ask(fmt.Sprint("s", i), 0, slots)
		}
		decisions := plan.Plan(&s.Snapshot)
		m := replay(t, &s.Snapshot, decisions)
		for _, d := range decisions {
			k := find(&s.Snapshot, d.SessionID).Kernels[0]
			if !d.Placed() {
				waits++
				for i := range s.Agents {
					if m.nearRoom(&s.Agents[i], k.Slots) {
						t.Fatalf("seed %d: waits for %v though agent %s has it near: %+v", seed, k.Slots, s.Agents[i].Name, d.Waiting)
					}
				}
				continue
			}
			placed++
			var used []*plan.Device
			for _, al := range d.Assignments[0].Allocs {
				used = append(used, m.devices[al.DeviceID])
			}
			if !onOneNode(used) {
				t.Fatalf("seed %d: %v is far from each other", seed, places(d))
			}
		}
	}
	if placed < 1000 || waits < 1000 {
		t.Errorf("%d placed, %d waiting", placed, waits)
	}
}

func onOneNode(devices []*plan.Device) bool {
	for _, d := range devices {
		if len(devices) > 1 && (d.NUMANode == nil || *d.NUMANode != *devices[0].NUMANode) {
			return false
		}
	}
	return true
}

// nearRoom tries all sets of an agent's devices, for a request of whole devices or of shares.
func (m *model) nearRoom(a *plan.Agent, ask resource.Slots) bool {
	gpus := a.Devices[2:]
	for mask := 1; mask < 1<<len(gpus); mask++ {
		var set []*plan.Device
		idle := int64(0)
		rest := int64(0) // the largest free amount of a device that is not idle
		for j := range gpus {
			if mask>>j&1 == 0 {
				continue
			}
			d := &gpus[j]
			set = append(set, d)
			if !m.busy(d.ID) {
				idle++
			} else if m.used[d.ID]["cuda.device"] == 0 {
				rest = max(rest, 1000-m.used[d.ID]["cuda.shares"])
			}
		}
		n := int64(bits.OnesCount(uint(mask)))
		if !onOneNode(set) || idle < n-1 {
			continue
		}
		if k := ask["cuda.device"]; k > 0 && k == n && idle == n {
			return true
		}
		if k := ask["cuda.shares"]; k > 0 && (k+999)/1000 == n && (idle == n || idle == n-1 && rest >= k-1000*(n-1)) {
			return true
		}
	}
	return false
}
