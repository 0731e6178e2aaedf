package plan

import (
	"hash/fnv"
	"maps"
	"slices"

	"github.com/berthhq/berth/internal/report"
)

// Agents of the same group, architecture and volumes whose devices are in the same state form
// a class: a result for one of them applies to all. A state is identified by a sum of 64-bit
// mixes of its devices and their usage, which take keeps up to date. Among a million states,
// two have the same sum with a probability of 3e-8; the effect is only a worse choice, because
// fit checks again.

// mix scatters the bits of x (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func mixText(texts ...string) uint64 {
	h := fnv.New64a()
	for _, t := range texts {
		_, _ = h.Write([]byte(t))
		_, _ = h.Write([]byte{0})
	}
	return mix(h.Sum64())
}

// hostOf returns the key of an agent without its devices.
func hostOf(a *Agent) uint64 {
	on := "off"
	if a.Schedulable {
		on = "on"
	}
	texts := []string{string(a.Group[:]), a.Architecture, on}
	for _, slot := range slices.Sorted(maps.Keys(a.Counts)) {
		texts = append(texts, slot+" "+report.ListCounts(a.Counts[slot]))
	}
	if a.Alone != "" {
		texts = append(texts, "alone")
	}
	volumes := slices.Compact(slices.Sorted(slices.Values(a.Volumes)))
	return mixText(append(texts, volumes...)...)
}

// identify sets the state keys of an agent and its devices.
func (c *cluster) identify(a *agent) {
	a.host = hostOf(a.src)
	a.key = a.host
	if a.limit > 0 {
		a.key += c.topologyOf(a).sum()
	}
	for i := range a.devices {
		d := &a.devices[i]
		for s := range c.slots {
			d.kind += uint64(d.capacity[s]) * mix(c.slots[s].weight)
		}
		if d.usable {
			d.kind++
		}
		d.kind = mix(d.kind + d.role())
		if a.limit > 0 {
			d.salt = mix(uint64(i + 1))
		}
		if d.pool == nil {
			a.key += mix(d.key + d.salt)
			continue
		}
		d.pool.key += mix(d.key + d.salt)
		d.pool.charge(d, 1)
	}
	for _, p := range a.pools {
		a.key += mix(p.key)
	}
	for i := range a.devices {
		c.swap(a, &a.devices[i], a.devices[i].used)
	}
}

// charge changes the used amount of a device, and its keys.
func (c *cluster) charge(a *agent, d *device, s int, amount int64) {
	if d.pool != nil {
		a.drop(d)
		defer a.add(d)
	} else {
		a.key -= mix(d.key + d.salt)
		a.key += mix(d.key + uint64(amount)*c.slots[s].weight + d.salt)
	}
	d.used[s] += amount
	d.key += uint64(amount) * c.slots[s].weight
}

// swap exchanges all used amounts of a device.
func (c *cluster) swap(a *agent, d *device, used []int64) {
	a.drop(d)
	d.used, d.key = used, d.kind
	for s := range c.slots {
		d.key += uint64(used[s]) * c.slots[s].weight
	}
	a.add(d)
}

// drop removes a device from its agent's key, and add adds it again. The key includes which
// devices that share hardware are in use.
func (a *agent) drop(d *device) {
	if d.pool == nil {
		a.key -= mix(d.key + d.salt)
		return
	}
	a.key -= mix(d.pool.key)
	d.pool.key -= mix(d.key + d.salt)
	d.pool.charge(d, -1)
}

func (a *agent) add(d *device) {
	if d.pool == nil {
		a.key += mix(d.key + d.salt)
		return
	}
	d.pool.charge(d, 1)
	d.pool.key += mix(d.key + d.salt)
	a.key += mix(d.pool.key)
}

// classes are the agents of one resource group by state. Only the classes in live have
// members; an empty class is found again by its key.
type classes struct {
	number map[uint64]int32
	all    []class
	live   []int32
}

type class struct {
	key     uint64
	members []int32
	at      int32 // index in live
}

// settle moves an agent to the class of its state. Agents that are reserved for the head of
// the queue are in no class.
func (c *cluster) settle(a *agent) {
	if a.classes == nil || a.class >= 0 && !a.held && a.classes.all[a.class].key == a.key {
		return
	}
	if a.class >= 0 {
		a.classes.leave(c, a)
	}
	if !a.held {
		a.classes.join(a)
	}
}

func (l *classes) join(a *agent) {
	n, ok := l.number[a.key]
	if !ok {
		n = int32(len(l.all))
		l.number[a.key] = n
		l.all = append(l.all, class{key: a.key})
	}
	k := &l.all[n]
	if len(k.members) == 0 {
		k.at = int32(len(l.live))
		l.live = append(l.live, n)
	}
	a.class, a.seat = n, int32(len(k.members))
	k.members = append(k.members, a.number)
}

func (l *classes) leave(c *cluster, a *agent) {
	k := &l.all[a.class]
	last := k.members[len(k.members)-1]
	k.members[a.seat] = last
	c.agents[last].seat = a.seat
	k.members = k.members[:len(k.members)-1]
	if len(k.members) == 0 {
		moved := l.live[len(l.live)-1]
		l.live[k.at] = moved
		l.all[moved].at = k.at
		l.live = l.live[:len(l.live)-1]
	}
	a.class = -1
}
