package plan_test

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// decided is decide without the rules of the model, which are those of the strategy fill.
func (s *site) decided() map[string]plan.Decision {
	by := map[string]plan.Decision{}
	for _, d := range plan.Plan(&s.Snapshot) {
		by[nameOf(d.SessionID)] = d
	}
	return by
}

func TestSplits(t *testing.T) {
	used := func(amounts ...int64) (list []resource.Slots) {
		for _, n := range amounts {
			list = append(list, resource.Slots{"cuda.shares": n})
		}
		return list
	}
	for name, c := range map[string]struct {
		split plan.Split
		gpus  []resource.Slots
		ask   resource.Slots
		want  []string // nil: the session waits
	}{
		"fill":                          {plan.SplitFill, used(0, 0, 0), resource.Slots{"cuda.shares": 1500}, []string{"a/0 cuda.shares 1000", "a/1 cuda.shares 500"}},
		"fill is the default":           {"", used(0, 0, 0), resource.Slots{"cuda.shares": 1500}, []string{"a/0 cuda.shares 1000", "a/1 cuda.shares 500"}},
		"evenly":                        {plan.SplitEvenly, used(0, 0, 0), resource.Slots{"cuda.shares": 1500}, []string{"a/0 cuda.shares 750", "a/1 cuda.shares 750"}},
		"evenly over devices with room": {plan.SplitEvenly, used(200, 300, 0), resource.Slots{"cuda.shares": 1500}, []string{"a/0 cuda.shares 750", "a/2 cuda.shares 750"}},
		"evenly over more":              {plan.SplitEvenly, used(400, 400, 500), resource.Slots{"cuda.shares": 1500}, []string{"a/2 cuda.shares 500", "a/0 cuda.shares 500", "a/1 cuda.shares 500"}},
		"evenly, except for one step":   {plan.SplitEvenly, used(0, 450, 400), resource.Slots{"cuda.shares": 1150}, []string{"a/2 cuda.shares 600", "a/1 cuda.shares 550"}},
		"evenly, not enough on any set": {plan.SplitEvenly, used(600, 600, 600), resource.Slots{"cuda.shares": 1500}, nil},
		"evenly, together with the memory": {
			plan.SplitEvenly, used(0, 0), resource.Slots{"cuda.shares": 1200, "cuda.mem": 31},
			[]string{"a/0 cuda.shares 600", "a/0 cuda.mem 16", "a/1 cuda.shares 600", "a/1 cuda.mem 15"},
		},
		"evenly, all of some devices":     {plan.SplitEvenly, used(0, 100, 0), resource.Slots{"cuda.shares": 2000}, []string{"a/0 cuda.shares 1000", "a/2 cuda.shares 1000"}},
		"evenly on one device if it fits": {plan.SplitEvenly, used(0, 300), resource.Slots{"cuda.shares": 700}, []string{"a/1 cuda.shares 700"}},
		"none":                            {plan.SplitNone, used(0, 0, 0), resource.Slots{"cuda.shares": 1500}, nil},
		"none: whole devices":             {plan.SplitNone, used(100, 0, 0), resource.Slots{"cuda.shares": 2000}, []string{"a/1 cuda.shares 1000", "a/2 cuda.shares 1000"}},
		"none: a fraction":                {plan.SplitNone, used(0, 100, 0), resource.Slots{"cuda.shares": 500}, []string{"a/1 cuda.shares 500"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			s.Groups[0].Split = c.split
			s.SlotTypes = append(s.SlotTypes, plan.SlotType{Name: "cuda.shares", Quantum: 50})
			s.agent("a", c.gpus...)
			s.ask("s", 0, c.ask)
			d := s.decided()["s"]
			if diff := cmp.Diff(c.want, places(d)); diff != "" || d.Placed() != (c.want != nil) {
				t.Errorf("placed %v: %s", d.Placed(), diff)
			}
		})
	}
}

func TestWhatAGroupNeverSplits(t *testing.T) {
	s := newSite()
	s.agent("a", nil, nil, nil)
	for _, c := range []struct {
		split  plan.Split
		amount int64
		want   []plan.Impossible
	}{
		{plan.SplitNone, 1500, []plan.Impossible{{
			Field: "slots.cuda.shares", Requested: "1.5", Limit: "1",
			Reason: "The resource group does not combine parts of several devices: more than 1 cuda.shares must be whole devices.",
		}}},
		{plan.SplitNone, 2000, nil},
		{plan.SplitFill, 1500, nil},
		{plan.SplitEvenly, 1500, nil},
	} {
		s.Groups[0].Split = c.split
		got := plan.CanEver(&s.Snapshot, s.ask("s", 0, resource.Slots{"cuda.shares": c.amount}))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s of %d: %s", c.split, c.amount, diff)
		}
	}
}

// TestWhatAgentsCount requests amounts that no agent of the group permits, although some agents
// have them.
func TestWhatAgentsCount(t *testing.T) {
	s := newSite()
	s.agent("a", nil, nil, nil, nil).Counts = report.Counts{"cuda.device": {1, 4}}
	s.agent("b", nil, nil, nil).Counts = report.Counts{"cuda.device": {2}}
	s.agent("c", nil)
	for amount, want := range map[int64][]plan.Impossible{
		1: nil, 2: nil, 4: nil,
		3: {{
			Field: "slots.cuda.device", Requested: "3", Limit: "1, 2 or 4",
			Reason: "The machines of the resource group that have enough give a container 1, 2 or 4 cuda.device, not 3.",
		}},
	} {
		got := plan.CanEver(&s.Snapshot, s.ask("s", 0, resource.Slots{"cpu": 1000, "cuda.device": amount}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d: %s", amount, diff)
		}
	}
}

// TestRandomEvenSplits checks every even split against its definition: it uses the fewest devices
// that have room for parts that differ by at most one step.
func TestRandomEvenSplits(t *testing.T) {
	placed, waits := 0, 0
	for seed := range uint64(3000) {
		w := newWorld(seed)
		s := newSite()
		s.Groups[0].Split = plan.SplitEvenly
		s.Groups[0].Strategy = pick(w, plan.Strategies...)
		step := pick(w, int64(1), 10, 50, 100)
		s.SlotTypes = append(s.SlotTypes, plan.SlotType{Name: "cuda.shares", Quantum: step})
		var gpus []resource.Slots
		for range 2 + w.IntN(5) {
			gpus = append(gpus, resource.Slots{"cuda.shares": step * w.Int64N(1000/step+1)})
		}
		s.agent("a", gpus...)
		amount := step * (1000/step + 1 + w.Int64N(3000/step))
		s.ask("s", 0, resource.Slots{"cuda.shares": amount})
		fewest := int64(0)
		for n := (amount + 999) / 1000; n <= int64(len(gpus)) && fewest == 0; n++ {
			larger, room, full := amount/step%n, int64(0), int64(0)
			for _, used := range gpus {
				switch free := 1000 - used["cuda.shares"]; {
				case free >= (amount/step/n+1)*step:
					full++
					room++
				case free >= amount/step/n*step:
					room++
				}
			}
			if room >= n && full >= larger {
				fewest = n
			}
		}
		d := s.decided()["s"]
		if d.Placed() != (fewest > 0) {
			t.Fatalf("seed %d: %d beside %v is placed: %v", seed, amount, gpus, d.Placed())
		}
		if !d.Placed() {
			waits++
			continue
		}
		placed++
		var pieces []int64
		devices := map[string]bool{}
		for _, al := range d.Assignments[0].Allocs {
			var i int
			if _, err := fmt.Sscanf(nameOf(al.DeviceID), "a/%d", &i); err != nil || al.Slot != "cuda.shares" {
				t.Fatalf("seed %d: %+v", seed, al)
			}
			if devices[al.DeviceID.String()] || al.Amount > 1000-gpus[i]["cuda.shares"] || al.Amount%step != 0 {
				t.Fatalf("seed %d: %d of a device with %v", seed, al.Amount, gpus[i])
			}
			devices[al.DeviceID.String()] = true
			pieces = append(pieces, al.Amount)
			amount -= al.Amount
		}
		if amount != 0 || int64(len(pieces)) != fewest || slices.Max(pieces)-slices.Min(pieces) > step {
			t.Fatalf("seed %d: pieces %v beside %v, want %d in steps of %d", seed, pieces, gpus, fewest, step)
		}
	}
	if placed < 500 || waits < 500 {
		t.Errorf("%d placed, %d waiting", placed, waits)
	}
}

// TestKindsOfSlots sends requests for several slots of one device, one after the other.
func TestKindsOfSlots(t *testing.T) {
	for name, c := range map[string]struct {
		types    []plan.SlotType
		capacity resource.Slots
		asks     []string // slot and amount
		want     []bool   // reports whether each request was placed
	}{
		"counted": {
			nil, resource.Slots{"x.ring": 4},
			[]string{"x.ring 2", "x.ring 1", "x.ring 1"}, []bool{true, true, true},
		},
		"unique": {
			[]plan.SlotType{{Name: "x.ring", Kind: plan.KindUnique}}, resource.Slots{"x.ring": 4, "x.other": 4},
			[]string{"x.ring 2", "x.ring 1", "x.other 4"}, []bool{true, false, true},
		},
		"unified": {
			[]plan.SlotType{{Name: "x.tile", Unified: true}, {Name: "x.core", Unified: true}},
			resource.Slots{"x.tile": 8, "x.core": 3, "x.other": 4},
			[]string{"x.core 1", "x.tile 6", "x.tile 5", "x.core 1", "x.other 4"}, []bool{true, false, true, false, true},
		},
		"unified shares and devices": {
			[]plan.SlotType{{Name: "x.shares", Unified: true}, {Name: "x.device", Unified: true}},
			resource.Slots{"x.shares": 1000, "x.device": 1},
			[]string{"x.shares 100", "x.device 1", "x.shares 900", "x.shares 1"}, []bool{true, false, true, false},
		},
		"halves by shares and by bytes": {
			[]plan.SlotType{
				{Name: "x.device", ExclusiveWith: []string{"x.shares", "x.mem"}},
				{Name: "x.shares", Kind: "shares", Quantum: 10, Unified: true},
				{Name: "x.mem", Kind: "bytes", Quantum: 1 << 20, Unified: true},
			},
			resource.Slots{"x.device": 1, "x.shares": 1000, "x.mem": 80 << 30},
			[]string{"x.shares 500", "x.device 1", "x.mem 42950721536", "x.mem 42949672960", "x.mem 1048576", "x.shares 10"},
			[]bool{true, false, false, true, false, false},
		},
		"unified, two of one kernel": {
			[]plan.SlotType{{Name: "x.shares", Unified: true}, {Name: "x.mem", Unified: true}},
			resource.Slots{"x.shares": 1000, "x.mem": 80},
			[]string{"x.shares 500 x.mem 41", "x.shares 500 x.mem 40", "x.mem 1"}, []bool{false, true, false},
		},
	} {
		for _, strategy := range plan.Strategies {
			t.Run(fmt.Sprint(name, " ", strategy), func(t *testing.T) {
				s := newSite()
				s.Groups[0].Strategy, s.SlotTypes = strategy, c.types
				a := s.agent("a", nil)
				a.Devices[2].Capacity = c.capacity
				for i, ask := range c.asks {
					slots := resource.Slots{}
					words := strings.Fields(ask)
					for j := 0; j < len(words); j += 2 {
						slots[words[j]], _ = strconv.ParseInt(words[j+1], 10, 64)
					}
					s.ask(fmt.Sprint(i), 0, slots).Priority = -i
				}
				for i, d := range plan.Plan(&s.Snapshot) {
					if d.Placed() != c.want[i] {
						t.Errorf("%s: placed %v", c.asks[i], d.Placed())
					}
				}
			})
		}
	}
}

// TestRandomUnified checks every decision on two names of one capacity against exact fractions.
func TestRandomUnified(t *testing.T) {
	placed, waits := 0, 0
	for seed := range uint64(2000) {
		w := newWorld(seed)
		s := newSite()
		s.Groups[0].HoldAfter = -1
		capacity := resource.Slots{"x.tile": 1 + w.Int64N(20), "x.mem": 1 + w.Int64N(1<<40)}
		for name := range capacity {
			s.SlotTypes = append(s.SlotTypes, plan.SlotType{Name: name, Unified: true})
		}
		s.agent("a", nil).Devices[2].Capacity = capacity
		for i := range 8 {
			name := pick(w, "x.tile", "x.mem")
			s.ask(fmt.Sprint(i), 0, resource.Slots{name: 1 + w.Int64N(1+capacity[name]/2)}).Priority = -i
		}
		used := new(big.Rat)
		for i, d := range plan.Plan(&s.Snapshot) {
			var part *big.Rat
			for name, n := range s.Pending[i].Kernels[0].Slots {
				part = big.NewRat(n, capacity[name])
			}
			sum := new(big.Rat).Add(used, part)
			if fits := sum.Cmp(big.NewRat(1, 1)) <= 0; fits != d.Placed() {
				t.Fatalf("seed %d: %v beside %v of %v is placed: %v", seed, s.Pending[i].Kernels[0].Slots, used, capacity, d.Placed())
			}
			if d.Placed() {
				used = sum
				placed++
			} else {
				waits++
			}
		}
	}
	if placed < 1000 || waits < 1000 {
		t.Errorf("%d placed, %d waiting", placed, waits)
	}
}
