package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// cut returns a device that partitions are cut from, and the partitions: names of profiles with the
// number of slices that each needs. The device and its partitions exclude each other by counters,
// by the parent, or by both.
func cut(agent, name string, slices int, counted, parent bool, profiles map[string][][]int) (report.Counters, []plan.Device) {
	set := "cuda/" + name
	counters := report.Counters{set: {}}
	all := map[string]int64{}
	for i := range slices {
		counters[set][fmt.Sprint("slice", i)], all[fmt.Sprint("slice", i)] = 1, 1
	}
	whole := plan.Device{
		ID: idOf(agent + "/" + name), Name: name, Allocatable: true, Healthy: true,
		Capacity: resource.Slots{"cuda.device": 1, "cuda.shares": 1000},
	}
	if counted {
		whole.Consumes = []report.CounterUse{{Set: set, Amounts: all}}
	}
	devices := []plan.Device{whole}
	for _, profile := range sortedKeys(profiles) {
		for _, at := range profiles[profile] {
			d := plan.Device{Name: fmt.Sprintf("%s/%s@%d", name, profile, at[0]), Allocatable: true, Healthy: true}
			d.ID = idOf(agent + "/" + d.Name)
			d.Capacity = resource.Slots{"cuda.device:" + profile: 1, "cuda.engines": 2}
			use := map[string]int64{}
			for _, i := range at {
				use[fmt.Sprint("slice", i)] = 1
			}
			d.Consumes = []report.CounterUse{{Set: set, Amounts: use}}
			if parent {
				d.Parent = name
			}
			devices = append(devices, d)
		}
	}
	return counters, devices
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

var profiles = map[string][][]int{
	"1g": {{0}, {1}, {2}, {3}},
	"2g": {{0, 1}, {2, 3}},
	"3g": {{0, 1, 2}, {1, 2, 3}},
}

// partitioned adds an agent with n devices of four slices.
func (s *site) partitioned(name string, n int, counted, parent bool) *plan.Agent {
	a := s.agent(name)
	a.Counters = report.Counters{}
	for i := range n {
		counters, devices := cut(name, fmt.Sprint(i), 4, counted, parent, profiles)
		for set, c := range counters {
			a.Counters[set] = c
		}
		a.Devices = append(a.Devices, devices...)
	}
	return a
}

// use marks devices of an agent as taken.
func use(a *plan.Agent, names ...string) {
	for i := range a.Devices {
		d := &a.Devices[i]
		if slices.Contains(names, d.Name) {
			d.Used = resource.Slots{}
			for _, slot := range d.Capacity.Names() {
				d.Used[slot] = d.Capacity[slot]
				break
			}
		}
	}
}

func TestPartitionsShareCounters(t *testing.T) {
	for name, c := range map[string]struct {
		used []string
		ask  resource.Slots
		want []string // nil: the session waits
		why  report.DroppedAgents
	}{
		"in addition to used devices": {
			[]string{"0/1g@0"}, resource.Slots{"cuda.device:3g": 1},
			[]string{"a/0/3g@1 cuda.device:3g 1"}, report.DroppedAgents{},
		},
		"overlapping devices are not free": {
			[]string{"0/1g@1"}, resource.Slots{"cuda.device:3g": 1},
			nil, report.DroppedAgents{Check: "counters", Slot: "cuda.device:3g", Count: 1},
		},
		"the whole device excludes its partitions": {
			[]string{"0"}, resource.Slots{"cuda.device:1g": 1},
			nil, report.DroppedAgents{Check: "counters", Slot: "cuda.device:1g", Count: 1},
		},
		"a partition excludes the whole device": {
			[]string{"0/1g@3"}, resource.Slots{"cuda.device": 1},
			nil, report.DroppedAgents{Check: "counters", Slot: "cuda.device", Count: 1},
		},
		"a partition excludes its shares": {
			[]string{"0/1g@3"}, resource.Slots{"cuda.shares": 100},
			nil, report.DroppedAgents{Check: "counters", Slot: "cuda.shares", Count: 1},
		},
		"two partitions that fit together": {
			nil, resource.Slots{"cuda.device:1g": 1, "cuda.device:3g": 1},
			[]string{"a/0/1g@0 cuda.device:1g 1", "a/0/3g@1 cuda.device:3g 1"}, report.DroppedAgents{},
		},
		"two partitions that do not fit together": {
			nil, resource.Slots{"cuda.device:2g": 1, "cuda.device:3g": 1},
			nil, report.DroppedAgents{Check: "counters", Slot: "cuda.device:3g", Count: 1},
		},
		"more than its capacity": {
			[]string{"0/1g@0", "0/1g@1", "0/1g@2", "0/1g@3"}, resource.Slots{"cuda.device:1g": 1},
			nil, report.DroppedAgents{Check: "slot_total", Slot: "cuda.device:1g", Count: 1},
		},
		"a second kernel on a partition in use": {
			[]string{"0/2g@0"}, resource.Slots{"cuda.device:2g": 1},
			[]string{"a/0/2g@2 cuda.device:2g 1"}, report.DroppedAgents{},
		},
	} {
		for _, by := range []string{"counters", "parent", "both"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				s := newSite()
				use(s.partitioned("a", 1, by != "parent", by != "counters"), c.used...)
				s.ask("s", 0, c.ask)
				d := s.decide(t)["s"]
				if diff := cmp.Diff(c.want, places(d)); diff != "" {
					t.Error(diff)
				}
				if c.want != nil {
					return
				}
				if d.Placed() {
					t.Fatal("was placed")
				}
				if diff := cmp.Diff([]report.DroppedAgents{c.why}, d.Waiting.Dropped); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestPartitionsFillABrokenDevice requests the smallest partition. In every strategy, it comes from
// the device that already has a partition in use, and the other device stays whole. On the device
// in use, it leaves room for a larger partition.
func TestPartitionsFillABrokenDevice(t *testing.T) {
	for _, strategy := range plan.Strategies {
		s := newSite()
		s.Groups[0].Strategy = strategy
		use(s.partitioned("a", 2, true, true), "1/1g@0")
		s.ask("s", 0, resource.Slots{"cuda.device:1g": 1})
		if got := places(s.decide(t)["s"]); !slices.Equal(got, []string{"a/1/1g@1 cuda.device:1g 1"}) {
			t.Errorf("%s: on %v", strategy, got)
		}
	}
}

func TestPartitionsThatNeverFitTogether(t *testing.T) {
	s := newSite()
	use(s.partitioned("a", 1, true, true), "0/1g@0")
	for _, c := range []struct {
		ask  resource.Slots
		want []plan.Impossible
	}{
		{resource.Slots{"cuda.device:1g": 2, "cuda.device:2g": 1}, nil},
		{resource.Slots{"cuda.device:1g": 1, "cuda.device:2g": 2}, []plan.Impossible{{
			Field: "slots", Requested: "cuda.device:1g 1, cuda.device:2g 2",
			Reason: "No machine of the resource group has partitions for all of these amounts together, because partitions share hardware.",
		}}},
	} {
		got := plan.CanEver(&s.Snapshot, s.ask("s", 0, c.ask))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestRandomPartitions compares the planner with a model that tries all sets of devices. No
// placement uses more slices than a device has, and a waiting request fits on no agent.
func TestRandomPartitions(t *testing.T) {
	n := uint64(4000)
	if testing.Short() {
		n = 500
	}
	placed, waits := 0, 0
	for seed := range n {
		w := newWorld(seed)
		s := w.partitions()
		decisions := plan.Plan(s)
		m := replay(t, s, decisions)
		for i := range s.Agents {
			if err := m.drawn(&s.Agents[i], nil); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for _, d := range decisions {
			if d.Placed() {
				placed++
				continue
			}
			waits++
			for i := range s.Agents {
				if k := find(s, d.SessionID).Kernels[0]; m.partitionsFit(&s.Agents[i], k.Slots) {
					t.Fatalf("seed %d: waits for %v though agent %s has it: %+v", seed, k.Slots, s.Agents[i].Name, d.Waiting)
				}
			}
		}
	}
	t.Logf("%d placed, %d wait", placed, waits)
	if placed < 1000 && !testing.Short() || waits < 100 {
		t.Errorf("%d placed, %d waiting: the worlds are too simple", placed, waits)
	}
}

// partitions returns a random group of agents with partitioned devices of 2 to 4 slices, and
// requests for them. The devices are equal or different, and some are in use.
func (w *world) partitions() *plan.Snapshot {
	s := newSite()
	s.Groups[0].HoldAfter = -1
	s.Groups[0].Strategy = pick(w, plan.Strategies...)
	s.SlotTypes = append(s.SlotTypes, plan.SlotType{Name: "cuda.shares", ExclusiveWith: []string{"cuda.device:*"}})
	counted, parent := w.chance(70), w.chance(50)
	alike, hardware := w.chance(50), w.Uint64()
	for i := range 1 + w.IntN(4) {
		a := s.agent(fmt.Sprint("n", i))
		a.Counters = report.Counters{}
		random := w
		if alike { // except for the names and the partitions in use
			w = newWorld(hardware)
		}
		for g := range 1 + w.IntN(2) {
			size := 2 + w.IntN(3)
			some := map[string][][]int{}
			for range 1 + w.IntN(5) {
				from, length := w.IntN(size), 1+w.IntN(size)
				var at []int
				for x := from; x < min(from+length, size); x++ {
					at = append(at, x)
				}
				name := fmt.Sprintf("%dg", len(at))
				if !slices.ContainsFunc(some[name], func(o []int) bool { return slices.Equal(o, at) }) {
					some[name] = append(some[name], at)
				}
			}
			counters, devices := cut(a.Name, fmt.Sprintf("u%d-%d", random.IntN(1000), g), size, counted, parent, some)
			for set, c := range counters {
				a.Counters[set] = c
			}
			w.Shuffle(len(devices), func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
			a.Devices = append(a.Devices, devices...)
		}
		w = random
		m := newModel(&plan.Snapshot{Agents: []plan.Agent{*a}})
		for range w.IntN(4) {
			d := &a.Devices[2+w.IntN(len(a.Devices)-2)]
			slot := pick(w, d.Capacity.Names()...)
			if d.Used == nil && m.drawn(a, map[uuid.UUID]bool{d.ID: true}) == nil {
				d.Used = resource.Slots{slot: min(d.Capacity[slot], 1)}
				m.used[d.ID] = d.Used
			}
		}
		a.Devices[2+w.IntN(len(a.Devices)-2)].Healthy = w.chance(90)
	}
	for i := range 1 + w.IntN(8) {
		slots := resource.Slots{}
		for range 1 + w.IntN(2) {
			switch w.IntN(8) {
			case 0:
				slots["cuda.device"] = 1 + w.Int64N(2)
			case 1:
				slots["cuda.shares"] = 100 * (1 + w.Int64N(10))
			case 2:
				slots["cuda.engines"] = 1 + w.Int64N(5)
			default:
				slots[fmt.Sprintf("cuda.device:%dg", 1+w.IntN(4))] = 1 + w.Int64N(3)
			}
		}
		s.ask(fmt.Sprint("s", i), 0, slots)
	}
	return &s.Snapshot
}

// drawn checks the counters that the used devices of an agent draw from, and that no used device is
// cut from another used one. The devices in "with" count as used.
func (m *model) drawn(a *plan.Agent, with map[uuid.UUID]bool) error {
	drawn := map[[2]string]int64{}
	inUse := map[string]bool{}
	for _, d := range a.Devices {
		if !m.busy(d.ID) && !with[d.ID] {
			continue
		}
		inUse[d.Name] = true
		for _, use := range d.Consumes {
			for name, n := range use.Amounts {
				of := [2]string{use.Set, name}
				if drawn[of] += n; drawn[of] > a.Counters[use.Set][name] {
					return fmt.Errorf("agent %s: %d drawn of %v", a.Name, drawn[of], of)
				}
			}
		}
	}
	for _, d := range a.Devices {
		if d.Parent != "" && inUse[d.Name] && inUse[d.Parent] {
			return fmt.Errorf("agent %s: %s is in use beside %s", a.Name, d.Name, d.Parent)
		}
	}
	return nil
}

// partitionsFit tries every set of devices. Each device of a set gives all that is left of one
// slot. Shares come from one device.
func (m *model) partitionsFit(a *plan.Agent, ask resource.Slots) bool {
	with := map[uuid.UUID]bool{}
	left := resource.Slots{}
	left.Add(ask)
	var try func(i int) bool
	try = func(i int) bool {
		if i == len(a.Devices) {
			for _, n := range left {
				if n > 0 {
					return false
				}
			}
			return m.drawn(a, with) == nil
		}
		if try(i + 1) {
			return true
		}
		d := &a.Devices[i]
		if !d.Healthy {
			return false
		}
		for slot, n := range left {
			amount := min(n, d.Capacity[slot]-m.used[d.ID][slot])
			if amount <= 0 || slot == "cuda.shares" && amount < ask[slot] || m.fits(d.ID, resource.Slots{slot: amount}) != nil ||
				slot != "cuda.engines" && slot != "cuda.shares" && m.busy(d.ID) {
				continue
			}
			if m.used[d.ID]["cuda.engines"] == 0 && slot == "cuda.engines" && m.busy(d.ID) {
				continue // allocated as a whole
			}
			left[slot], with[d.ID] = n-amount, true
			ok := try(i + 1)
			left[slot] = n
			delete(with, d.ID)
			if ok {
				return true
			}
		}
		return false
	}
	return try(0)
}
