package plan_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// twoSockets adds an agent of two NUMA nodes with half of its cpu, memory and devices each. The
// devices of a node are on boards of two.
func (s *site) twoSockets(name string, gpus ...resource.Slots) *plan.Agent {
	a := s.agent(name, gpus...)
	host := a.Devices[:2]
	var devices []plan.Device
	for node := range 2 {
		for _, d := range host {
			d.ID = idOf(fmt.Sprintf("%s/%s%d", name, nameOf(d.ID)[len(name)+1:], node))
			d.Name, d.NUMANode = nameOf(d.ID), &node
			half := resource.Slots{}
			for slot, n := range d.Capacity {
				half[slot] = n / 2
			}
			d.Capacity = half
			devices = append(devices, d)
		}
	}
	for i, d := range a.Devices[2:] {
		node := i * 2 / len(gpus)
		d.Name, d.NUMANode, d.Groups = fmt.Sprint(i), &node, []string{fmt.Sprint("board", i/2)}
		devices = append(devices, d)
	}
	a.Devices = devices
	return a
}

// hosts returns the cpu and the memory of a decision, by device.
func hosts(d plan.Decision) []string {
	var list []string
	for _, as := range d.Assignments {
		for _, al := range as.Allocs {
			if al.Slot == "cpu" || al.Slot == "mem" {
				list = append(list, fmt.Sprintf("%s %d", nameOf(al.DeviceID), al.Amount))
			}
		}
	}
	return list
}

func TestNearDevicesAreTakenTogether(t *testing.T) {
	busy := resource.Slots{"cuda.device": 1}
	link := func(a, b int, kind string, distance int, gbps float64) report.Link {
		return report.Link{A: fmt.Sprint(a), B: fmt.Sprint(b), Type: kind, Distance: distance, GBps: gbps}
	}
	for name, c := range map[string]struct {
		used  []resource.Slots
		links []report.Link
		ask   resource.Slots
		want  []string
	}{
		"one board": {
			[]resource.Slots{busy, nil, nil, nil, nil, nil, nil, nil}, nil, resource.Slots{"cuda.device": 2},
			[]string{"a/2 cuda.device 1", "a/3 cuda.device 1"},
		},
		"one NUMA node": {
			[]resource.Slots{busy, nil, nil, nil, nil, nil, nil, nil}, nil, resource.Slots{"cuda.device": 4},
			[]string{"a/4 cuda.device 1", "a/5 cuda.device 1", "a/6 cuda.device 1", "a/7 cuda.device 1"},
		},
		"a single one from a board that is broken": {
			[]resource.Slots{nil, nil, nil, nil, nil, busy, nil, nil}, nil, resource.Slots{"cuda.device": 1},
			[]string{"a/4 cuda.device 1"},
		},
		"a link before a board": {
			make([]resource.Slots, 8), []report.Link{link(1, 6, "nvlink", 1, 0)}, resource.Slots{"cuda.device": 2},
			[]string{"a/1 cuda.device 1", "a/6 cuda.device 1"},
		},
		"the faster of two links": {
			make([]resource.Slots, 8), []report.Link{link(1, 6, "xgmi", 1, 50), link(2, 5, "xgmi", 1, 100)}, resource.Slots{"cuda.device": 2},
			[]string{"a/2 cuda.device 1", "a/5 cuda.device 1"},
		},
		"the shorter way over PCIe": {
			[]resource.Slots{busy, nil, busy, nil, nil, busy, nil, busy},
			[]report.Link{link(1, 3, "pcie", 30, 0), link(4, 6, "pcie", 10, 0)}, resource.Slots{"cuda.device": 2},
			[]string{"a/4 cuda.device 1", "a/6 cuda.device 1"},
		},
		"one and a half": {
			[]resource.Slots{busy, nil, nil, nil, busy, busy, busy, busy}, nil, resource.Slots{"cuda.shares": 1500},
			[]string{"a/2 cuda.shares 1000", "a/3 cuda.shares 500"},
		},
		"the fraction that packs best": {
			[]resource.Slots{busy, nil, nil, nil, busy, busy, {"cuda.shares": 500}, busy}, nil, resource.Slots{"cuda.shares": 1500},
			[]string{"a/1 cuda.shares 1000", "a/6 cuda.shares 500"},
		},
		"distant devices rather than none": {
			[]resource.Slots{busy, nil, busy, busy, busy, busy, busy, nil}, nil, resource.Slots{"cuda.device": 2},
			[]string{"a/1 cuda.device 1", "a/7 cuda.device 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, strategy := range plan.Strategies {
				s := newSite()
				s.Groups[0].Strategy = strategy
				s.twoSockets("a", c.used...).Links = c.links
				s.ask("s", 0, c.ask)
				if got := places(s.decide(t)["s"]); !slices.Equal(got, c.want) {
					t.Errorf("%s: on %v, want %v", strategy, got, c.want)
				}
			}
		})
	}
}

// TestHostIsNearTheDevices requests cpu and memory. They come from the node of the devices as far
// as it has enough, and the devices come from the node that has enough cpu and memory.
func TestHostIsNearTheDevices(t *testing.T) {
	for name, c := range map[string]struct {
		cpu  [2]int64 // in use
		gpus []resource.Slots
		ask  resource.Slots
		want []string
	}{
		"of the node of its device":     {[2]int64{}, []resource.Slots{{"cuda.device": 1}, nil}, resource.Slots{"cpu": 1000, "mem": 8, "cuda.device": 1}, []string{"a/cpu1 1000", "a/mem1 8"}},
		"the rest of the other":         {[2]int64{0, 3500}, []resource.Slots{{"cuda.device": 1}, nil}, resource.Slots{"cpu": 1000, "mem": 8, "cuda.device": 1}, []string{"a/cpu1 500", "a/cpu0 500", "a/mem1 8"}},
		"a device where there is room":  {[2]int64{3500, 0}, []resource.Slots{nil, nil}, resource.Slots{"cpu": 1000, "mem": 8, "cuda.device": 1}, []string{"a/cpu1 1000", "a/mem1 8"}},
		"both where there is no device": {[2]int64{3500, 0}, nil, resource.Slots{"cpu": 1000, "mem": 8}, []string{"a/cpu1 1000", "a/mem1 8"}},
		"any node if neither has both":  {[2]int64{3500, 3500}, nil, resource.Slots{"cpu": 1000, "mem": 8}, []string{"a/cpu0 500", "a/cpu1 500", "a/mem0 8"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			a := s.twoSockets("a", c.gpus...)
			for node, used := range c.cpu {
				a.Devices[2*node].Used = resource.Slots{"cpu": used}
			}
			s.ask("s", 0, c.ask)
			if got := hosts(s.decide(t)["s"]); !slices.Equal(got, c.want) {
				t.Errorf("on %v, want %v", got, c.want)
			}
		})
	}
}

// TestEqualAgentsAreToldApartByTheirLinks has several agents in the same state, of which one has a
// whole free board.
func TestEqualAgentsAreToldApartByTheirLinks(t *testing.T) {
	busy := resource.Slots{"cuda.device": 1}
	s := newSite()
	for i := range 6 {
		used := []resource.Slots{busy, nil, busy, nil}
		if i == 4 {
			used = []resource.Slots{busy, busy, nil, nil}
		}
		s.twoSockets(fmt.Sprint("n", i), used...)
	}
	s.ask("s", 0, resource.Slots{"cuda.device": 2})
	if got := places(s.decide(t)["s"]); !slices.Equal(got, []string{"n4/2 cuda.device 1", "n4/3 cuda.device 1"}) {
		t.Errorf("on %v", got)
	}
}

// TestNearestOfAll compares the chosen devices of one agent, with random links, with all sets of as
// many idle devices.
func TestNearestOfAll(t *testing.T) {
	for seed := range uint64(1000) {
		w := newWorld(seed)
		s := newSite()
		s.Groups[0].Strategy = pick(w, plan.Strategies...)
		n := 2 + w.IntN(9)
		a := s.agent("a", make([]resource.Slots, n)...)
		var idle []int
		far := map[[2]int]int{}
		for i := range n {
			d := &a.Devices[2+i]
			d.Name = fmt.Sprint(i)
			if w.chance(30) {
				d.Used = resource.Slots{"cuda.device": 1}
			} else {
				idle = append(idle, i)
			}
			for j := range i {
				distance := w.IntN(20)
				far[[2]int{j, i}] = distance
				a.Links = append(a.Links, report.Link{A: fmt.Sprint(i), B: fmt.Sprint(j), Type: "pcie", Distance: distance})
			}
		}
		if len(idle) < 2 {
			continue
		}
		k := 2 + w.IntN(len(idle)-1)
		s.ask("s", 0, resource.Slots{"cuda.device": int64(k)})
		sum := func(set []int) (sum int) {
			for i, x := range set {
				for _, y := range set[:i] {
					sum += far[[2]int{min(x, y), max(x, y)}]
				}
			}
			return sum
		}
		least := math.MaxInt
		for mask := range 1 << len(idle) {
			var set []int
			for b, i := range idle {
				if mask>>b&1 == 1 {
					set = append(set, i)
				}
			}
			if len(set) == k {
				least = min(least, sum(set))
			}
		}
		var got []int
		for _, al := range s.decide(t)["s"].Assignments[0].Allocs {
			var i int
			if _, err := fmt.Sscanf(nameOf(al.DeviceID), "a/%d", &i); err == nil {
				got = append(got, i)
			}
		}
		if len(got) != k || sum(got) != least {
			t.Fatalf("seed %d: %v of %v are %d apart, the nearest %d", seed, got, idle, sum(got), least)
		}
	}
}

// TestTopologyKeepsNobodyWaiting adds NUMA nodes, boards, PCI roots and links to the agents of the
// random worlds, and requests more devices than can be compared one by one.
func TestTopologyKeepsNobodyWaiting(t *testing.T) {
	worlds(t, func(t *testing.T, w *world, s *plan.Snapshot) {
		for i := range s.Agents {
			w.lay(&s.Agents[i])
		}
		for i := range s.Groups {
			s.Groups[i].HoldAfter = -1
		}
		decisions := plan.Plan(s)
		m := replay(t, s, decisions)
		for _, d := range decisions {
			r := find(s, d.SessionID)
			if d.Placed() || len(r.Kernels) != 1 || len(d.Waiting.Limits) > 0 || r.RetryAt.After(s.Now) {
				continue
			}
			for j := range s.Agents {
				if a := &s.Agents[j]; m.suits(a, r) == nil && m.room(a, r.Kernels[0]) {
					t.Fatalf("waits for %v though agent %s has room", r.Kernels[0].Slots, a.Name)
				}
			}
		}
	})
}

// lay assigns the devices of an agent to NUMA nodes, boards and PCI roots.
func (w *world) lay(a *plan.Agent) {
	nodes := []*int{nil, new(int), new(int)}
	*nodes[2] = 1
	for i := range a.Devices {
		d := &a.Devices[i]
		d.Name, d.NUMANode = fmt.Sprint(i), pick(w, nodes...)
		if w.chance(50) {
			d.PCIeRoot = pick(w, "pci0000:00", "pci0000:40")
		}
		if w.chance(50) {
			d.Groups = []string{pick(w, "tray0", "tray1")}
		}
	}
	for range w.IntN(2 * len(a.Devices)) {
		a.Links = append(a.Links, report.Link{
			A: fmt.Sprint(w.IntN(len(a.Devices))), B: fmt.Sprint(w.IntN(len(a.Devices) + 1)),
			Type: pick(w, "nvlink", "pcie", "same_board", "nic", "unknown"), Distance: w.IntN(100), GBps: float64(w.IntN(3)) * 50,
		})
	}
}

// TestManyDevicesAreArranged requests half of 64 devices in boards of eight. There are too many
// sets to compare, but four boards are as near as possible.
func TestManyDevicesAreArranged(t *testing.T) {
	s := newSite()
	a := s.agent("a", make([]resource.Slots, 64)...)
	for i := range a.Devices[2:] {
		a.Devices[2+i].Name, a.Devices[2+i].Groups = fmt.Sprint(i), []string{fmt.Sprint("board", i*5%8)}
	}
	s.ask("s", 0, resource.Slots{"cuda.device": 32})
	boards := map[string]int{}
	byID := map[uuid.UUID]string{}
	for _, d := range a.Devices[2:] {
		byID[d.ID] = d.Groups[0]
	}
	for _, al := range s.decide(t)["s"].Assignments[0].Allocs {
		boards[byID[al.DeviceID]]++
	}
	if len(boards) != 4 {
		t.Errorf("on %v", boards)
	}
}
