package plan

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// rule is the way in which a slot is taken from devices.
type rule int

const (
	pooled rule = iota // any amounts of several devices
	whole              // entirely free devices
	part               // one device, or idle ones and a remainder on one
)

// ruleOf derives the rule from the slot's name.
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

// cluster is a snapshot whose slots have small numbers: amounts are in dense slices, so that
// the inner loops use no maps.
type cluster struct {
	slots  []slot
	number map[string]int
	agents []agent // by name
	taken  []taking

	networked *int // see Snapshot
}

type slot struct {
	name    string
	rule    rule
	exclude []bool // by slot number: cannot be used on the same device; the slot itself if it allows one consumer per device
	unified bool   // one of several names for the same capacity of a device
	quantum int64
	family  string // of accelerators; "" for cpu and mem
	weight  uint64 // its factor in the key of a state
	most    int64  // capacity of the largest device
}

type agent struct {
	src      *Agent
	number   int32
	devices  []device
	families []string  // of its accelerators
	held     bool      // reserved for the head of the queue
	split    Split     // split of its group
	limit    int32     // largest distance between a kernel's devices; 0: no limit
	flat     bool      // the topology of its devices is unknown
	near     *topology // created on first use
	pools    []*pool   // hardware that its devices share
	last     time.Time // when a kernel was last placed on it

	host, key   uint64 // key without and with the state
	classes     *classes
	class, seat int32
	// Per slot, over usable devices; refresh updates free and best.
	offer []int64 // capacity
	most  []int64 // capacity of the largest device
	free  []int64 // free amount
	best  []int64 // free amount of the best single device
}

type device struct {
	src      *Device
	family   string
	kind     uint64 // key without state
	key      uint64 // key with state
	salt     uint64 // distinguishes devices in equal states where that matters
	usable   bool
	capacity []int64
	used     []int64
	pool     *pool // shared hardware; nil for most devices
	draws    []draw
}

func newCluster(s *Snapshot) *cluster {
	c := &cluster{networked: s.Networked}
	c.numberSlots(s)
	c.typeSlots(s.SlotTypes)
	groups := map[uuid.UUID]*Group{}
	for i := range s.Groups {
		groups[s.Groups[i].ID] = &s.Groups[i]
	}
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
		a := agent{
			src: src, last: src.LastUsed, class: -1, flat: flat(src),
			offer: next(), most: next(), free: next(), best: next(),
		}
		begin := len(all)
		for j := range src.Devices {
			all = append(all, c.device(&src.Devices[j], next(), next()))
		}
		a.devices = all[begin:len(all):len(all)]
		if g := groups[src.Group]; g != nil {
			a.split, a.limit = g.Split, g.Topology.limit()
		}
		a.share()
		c.sum(&a)
		c.identify(&a)
		c.agents = append(c.agents, a)
	}
	slices.SortFunc(c.agents, func(a, b agent) int {
		return cmp.Or(cmp.Compare(a.src.Name, b.src.Name), bytes.Compare(a.src.ID[:], b.src.ID[:]))
	})
	for i := range c.agents {
		c.agents[i].number = int32(i)
		c.refresh(&c.agents[i])
	}
	return c
}

// numberSlots numbers all slot names in alphabetical order.
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
		c.slots = append(c.slots, slot{name: name, rule: ruleOf(name), family: familyOf(name), weight: mixText(name)})
	}
}

func (c *cluster) note(slots resource.Slots) {
	for name := range slots {
		if _, ok := c.number[name]; !ok {
			c.number[name] = 0
		}
	}
}

// typeSlots sets the properties of slots, with exclusion in both directions. A whole device
// excludes everything anyway, because it must be entirely free.
func (c *cluster) typeSlots(types []SlotType) {
	for i := range c.slots {
		c.slots[i].exclude = make([]bool, len(c.slots))
		c.slots[i].quantum = 1
	}
	for _, t := range types {
		a, ok := c.number[t.Name]
		if !ok {
			continue
		}
		c.slots[a].quantum = max(t.Quantum, 1)
		c.slots[a].unified = t.Unified
		for b := range c.slots {
			if a != b && resource.Apart(t.ExclusiveWith, c.slots[b].name) {
				c.slots[a].exclude[b], c.slots[b].exclude[a] = true, true
			}
		}
		c.slots[a].exclude[a] = t.Kind == KindUnique
	}
}

func (c *cluster) device(src *Device, capacity, used []int64) device {
	for name, amount := range src.Capacity {
		capacity[c.number[name]] = max(amount, 0)
	}
	for name, amount := range src.Used {
		used[c.number[name]] = amount
	}
	d := device{src: src, usable: src.Allocatable && src.Healthy, capacity: capacity, used: used}
	for s, amount := range capacity {
		if amount > 0 && d.family == "" {
			d.family = c.slots[s].family
		}
	}
	return d
}

// sum computes the values that never change.
func (c *cluster) sum(a *agent) {
	for i := range a.devices {
		d := &a.devices[i]
		if !d.usable {
			continue
		}
		for s, amount := range d.capacity {
			a.offer[s] += amount
			a.most[s] = max(a.most[s], amount)
			c.slots[s].most = max(c.slots[s].most, amount)
		}
		if d.family != "" && !slices.Contains(a.families, d.family) {
			a.families = append(a.families, d.family)
		}
	}
}

// refresh updates the free amounts after devices changed.
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
	c.settle(a)
}

// available returns the free amount of a slot on a device.
func (c *cluster) available(d *device, s int) int64 {
	free := d.capacity[s] - d.used[s]
	if !d.usable || free <= 0 || d.pool != nil && d.blocked() {
		return 0
	}
	for t, used := range d.used {
		if used > 0 && (c.slots[s].rule == whole || c.slots[t].rule == whole || c.slots[s].exclude[t]) {
			return 0
		}
	}
	if c.slots[s].unified {
		return c.unifiedLeft(d, s)
	}
	return free
}

// busy reports whether any amount of the device is in use.
func (d *device) busy() bool {
	for _, used := range d.used {
		if used > 0 {
			return true
		}
	}
	return false
}

// idle reports whether the whole device can be taken.
func (d *device) idle() bool {
	return d.usable && !d.busy() && (d.pool == nil || d.pool.has(d.draws, 1))
}

// taking is one entry of the journal. Entries are undone from the end.
type taking struct {
	agent, device, slot int
	amount              int64
}

// take records a taken amount of a device in the journal.
func (c *cluster) take(a, d, s int, amount int64) {
	c.charge(&c.agents[a], &c.agents[a].devices[d], s, amount)
	c.taken = append(c.taken, taking{a, d, s, amount})
}

// undo reverts the entries since the journal had length mark.
func (c *cluster) undo(mark int) {
	taken := c.taken[mark:]
	c.rollback(mark)
	for i, t := range taken {
		if i == 0 || t.agent != taken[i-1].agent {
			c.refresh(&c.agents[t.agent])
		}
	}
}

// rollback is undo without refresh, for entries that were never refreshed.
func (c *cluster) rollback(mark int) {
	for _, t := range c.taken[mark:] {
		a := &c.agents[t.agent]
		c.charge(a, &a.devices[t.device], t.slot, -t.amount)
	}
	c.taken = c.taken[:mark]
}

// assignment converts the journal since mark to an assignment.
func (c *cluster) assignment(kernel uuid.UUID, mark int) Assignment {
	out := Assignment{KernelID: kernel, Allocs: make([]Alloc, 0, len(c.taken)-mark)}
	for _, t := range c.taken[mark:] {
		a := &c.agents[t.agent]
		out.AgentID = a.src.ID
		out.Allocs = append(out.Allocs, Alloc{a.devices[t.device].src.ID, c.slots[t.slot].name, t.amount})
	}
	return out
}
