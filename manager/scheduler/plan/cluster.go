package plan

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// rule is how a slot is taken from devices.
type rule int

const (
	pooled rule = iota // any amounts of any devices
	whole              // entirely free devices
	part               // one device, or free ones and one remainder
)

// ruleOf follows from the name, as its scale does.
func ruleOf(slot string) rule {
	_, unit, onDevice := strings.Cut(slot, ".")
	if !onDevice {
		return pooled
	}
	if resource.KindOf(slot) != resource.Count {
		return part
	}
	if unit == "device" || strings.HasPrefix(unit, "device:") {
		return whole
	}
	return pooled
}

// cluster is a snapshot with slots as small numbers: amounts per slot are
// dense slices, so that the inner loops touch no map.
type cluster struct {
	slots  []slot
	number map[string]int
	agents []agent // by name
	taken  []taking
}

type slot struct {
	name    string
	rule    rule
	exclude []bool // by slot number: not on one device
}

type agent struct {
	src     *Agent
	devices []device
	held    bool // for the head of the queue
	// Per slot, over usable devices; refresh keeps free and best.
	offer []int64 // capacity
	most  []int64 // capacity of the largest device
	free  []int64 // what can still be taken
	best  []int64 // of that, on the best single device
}

type device struct {
	src      *Device
	usable   bool
	capacity []int64
	used     []int64
}

// taking is one entry of the journal, which can be undone from its end.
type taking struct {
	agent, device, slot int
	amount              int64
}

func newCluster(s *Snapshot) *cluster {
	c := &cluster{}
	c.numberSlots(s)
	c.excludeSlots(s.SlotTypes)
	devices := 0
	for i := range s.Agents {
		devices += len(s.Agents[i].Devices)
	}
	n := len(c.slots)
	amounts := make([]int64, n*(2*devices+4*len(s.Agents)))
	next := func() []int64 {
		var x []int64
		x, amounts = amounts[:n:n], amounts[n:]
		return x
	}
	all := make([]device, 0, devices)
	c.agents = make([]agent, 0, len(s.Agents))
	for i := range s.Agents {
		src := &s.Agents[i]
		a := agent{src: src, offer: next(), most: next(), free: next(), best: next()}
		begin := len(all)
		for j := range src.Devices {
			all = append(all, c.device(&src.Devices[j], next(), next()))
		}
		a.devices = all[begin:len(all):len(all)]
		a.sum()
		c.agents = append(c.agents, a)
	}
	slices.SortFunc(c.agents, func(a, b agent) int {
		return cmp.Or(cmp.Compare(a.src.Name, b.src.Name), bytes.Compare(a.src.ID[:], b.src.ID[:]))
	})
	for i := range c.agents {
		c.refresh(&c.agents[i])
	}
	return c
}

// numberSlots gives every name that occurs a number, in alphabetical order.
func (c *cluster) numberSlots(s *Snapshot) {
	c.number = map[string]int{}
	for i := range s.Agents {
		for j := range s.Agents[i].Devices {
			d := &s.Agents[i].Devices[j]
			c.note(d.Capacity)
			c.note(d.Used)
		}
	}
	for i := range s.Pending {
		for j := range s.Pending[i].Kernels {
			c.note(s.Pending[i].Kernels[j].Slots)
		}
	}
	for i, name := range slices.Sorted(maps.Keys(c.number)) {
		c.number[name] = i
		c.slots = append(c.slots, slot{name: name, rule: ruleOf(name)})
	}
}

func (c *cluster) note(slots resource.Slots) {
	for name := range slots {
		if _, ok := c.number[name]; !ok {
			c.number[name] = 0
		}
	}
}

// excludeSlots spreads what the types declare to both sides. A whole device
// excludes everything anyway: it must be entirely free.
func (c *cluster) excludeSlots(types []SlotType) {
	for i := range c.slots {
		c.slots[i].exclude = make([]bool, len(c.slots))
	}
	for _, t := range types {
		a, ok := c.number[t.Name]
		if !ok {
			continue
		}
		for _, pattern := range t.ExclusiveWith {
			prefix, star := strings.CutSuffix(pattern, "*")
			for b := range c.slots {
				if name := c.slots[b].name; name == pattern || star && strings.HasPrefix(name, prefix) {
					c.slots[a].exclude[b], c.slots[b].exclude[a] = true, true
				}
			}
		}
	}
	for i := range c.slots {
		c.slots[i].exclude[i] = false
	}
}

func (c *cluster) device(src *Device, capacity, used []int64) device {
	for name, amount := range src.Capacity {
		capacity[c.number[name]] = max(amount, 0)
	}
	for name, amount := range src.Used {
		used[c.number[name]] = amount
	}
	return device{src: src, usable: src.Allocatable && src.Healthy, capacity: capacity, used: used}
}

// sum fills what never changes.
func (a *agent) sum() {
	for i := range a.devices {
		d := &a.devices[i]
		if !d.usable {
			continue
		}
		for s, amount := range d.capacity {
			a.offer[s] += amount
			a.most[s] = max(a.most[s], amount)
		}
	}
}

// refresh recounts what can be taken after devices changed.
func (c *cluster) refresh(a *agent) {
	clear(a.free)
	clear(a.best)
	for i := range a.devices {
		d := &a.devices[i]
		for s, amount := range d.capacity {
			if amount == 0 {
				continue
			}
			if free := c.available(d, s); free > 0 {
				a.free[s] += free
				a.best[s] = max(a.best[s], free)
			}
		}
	}
}

// available is how much of a slot a device can still give.
func (c *cluster) available(d *device, s int) int64 {
	free := d.capacity[s] - d.used[s]
	if !d.usable || free <= 0 {
		return 0
	}
	for t, used := range d.used {
		if used > 0 && (c.slots[s].rule == whole || c.slots[t].rule == whole || c.slots[s].exclude[t]) {
			return 0
		}
	}
	return free
}

// idle tells whether nothing of the device is in use.
func (d *device) idle() bool {
	for _, used := range d.used {
		if used > 0 {
			return false
		}
	}
	return d.usable
}

// take notes an amount of a device in the journal.
func (c *cluster) take(a, d, s int, amount int64) {
	c.agents[a].devices[d].used[s] += amount
	c.taken = append(c.taken, taking{a, d, s, amount})
}

// undo gives back what was taken since the journal had length mark.
func (c *cluster) undo(mark int) {
	for len(c.taken) > mark {
		last := c.taken[len(c.taken)-1]
		c.taken = c.taken[:len(c.taken)-1]
		a := &c.agents[last.agent]
		a.devices[last.device].used[last.slot] -= last.amount
		if n := len(c.taken); n == mark || c.taken[n-1].agent != last.agent {
			c.refresh(a)
		}
	}
}

// assignment turns the journal since mark into the answer.
func (c *cluster) assignment(kernel uuid.UUID, mark int) Assignment {
	out := Assignment{KernelID: kernel, Allocs: make([]Alloc, 0, len(c.taken)-mark)}
	for _, t := range c.taken[mark:] {
		a := &c.agents[t.agent]
		out.AgentID = a.src.ID
		out.Allocs = append(out.Allocs, Alloc{a.devices[t.device].src.ID, c.slots[t.slot].name, t.amount})
	}
	return out
}
