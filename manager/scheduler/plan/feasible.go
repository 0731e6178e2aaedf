package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Impossible is a requirement that no agent of the group could meet, even if idle.
type Impossible struct {
	Field     string // slots.cpu, slots, kernels, architecture, mounts
	Requested string
	Limit     string // the maximum, or the topology of the group
	Reason    string // one sentence for users
}

// CanEver returns the requirements that make a request impossible, so that it can be rejected
// at once. Devices count as healthy and agents as schedulable, because they can be so again.
// In a group without agents, only unknown slots are rejected.
func CanEver(s *Snapshot, r *Request) []Impossible { return NewIdle(s).CanEver(r) }

// Idle is an idle cluster without faults. It answers CanEver for any number of requests, one
// after the other.
type Idle struct {
	s      *Snapshot
	known  map[string]bool
	groups map[uuid.UUID]*cluster
}

// NewIdle returns the Idle of a snapshot, which must not change afterwards.
func NewIdle(s *Snapshot) *Idle {
	known := map[string]bool{resource.CPU: true, resource.Mem: true}
	for _, t := range s.SlotTypes {
		known[t.Name] = true
	}
	for i := range s.Agents {
		for _, d := range s.Agents[i].Devices {
			for name := range d.Capacity {
				known[name] = true
			}
		}
	}
	return &Idle{s, known, map[uuid.UUID]*cluster{}}
}

// of returns the request's group. It is created once for all requests that can run on any
// agent and whose slots were requested before.
func (i *Idle) of(r *Request) *cluster {
	c := i.groups[r.Group]
	if c != nil && !r.Strict && !slices.ContainsFunc(r.Kernels, func(k KernelRequest) bool { return !c.numbers(k.Slots) }) {
		return c
	}
	c = newCluster(idleGroup(i.s, r))
	if !r.Strict {
		i.groups[r.Group] = c
	}
	return c
}

// numbers reports whether all of the slots have numbers.
func (c *cluster) numbers(slots resource.Slots) bool {
	for name := range slots {
		if _, ok := c.number[name]; !ok {
			return false
		}
	}
	return true
}

// CanEver returns the requirements that make a request impossible.
func (i *Idle) CanEver(r *Request) []Impossible {
	c := i.of(r)
	v := &verdict{c: c, known: i.known, request: r}
	if g := slices.IndexFunc(i.s.Groups, func(g Group) bool { return g.ID == r.Group }); g >= 0 {
		v.topology = i.s.Groups[g].Topology
	}
	for i := range r.Kernels {
		v.slots(r.Kernels[i].Slots)
	}
	if len(v.list) > 0 || len(c.agents) == 0 {
		return v.list
	}
	v.host()
	if len(v.list) == 0 {
		v.whole()
	}
	return v.list
}

type verdict struct {
	c        *cluster
	known    map[string]bool
	request  *Request
	topology Topology // of the group
	list     []Impossible
}

// idleGroup returns the request's group as if it was idle and without faults.
func idleGroup(s *Snapshot, r *Request) *Snapshot {
	out := &Snapshot{Groups: s.Groups, SlotTypes: s.SlotTypes, Pending: []Request{*r}}
	for _, a := range s.Agents {
		if a.Group != r.Group || r.excluded(a.ID) {
			continue
		}
		devices := make([]Device, len(a.Devices))
		for i, d := range a.Devices {
			d.Healthy, d.Used = true, nil
			devices[i] = d
		}
		a.Devices = devices
		out.Agents = append(out.Agents, a)
	}
	return out
}

func (v *verdict) add(i Impossible) {
	if !slices.Contains(v.list, i) {
		v.list = append(v.list, i)
	}
}

// slots checks each slot of a kernel by itself.
func (v *verdict) slots(slots resource.Slots) {
	for _, name := range slots.Names() {
		amount := slots[name]
		out := Impossible{Field: "slots." + name, Requested: resource.Format(name, amount), Limit: "0"}
		switch most := v.most(v.c.number[name]); {
		case amount <= 0:
			out.Reason = fmt.Sprintf("The amount of %s must be above 0.", name)
		case !v.known[name]:
			out.Reason = fmt.Sprintf("The slot %s does not exist.", name)
		case len(v.c.agents) == 0 || amount <= most:
			continue
		case most == 0:
			out.Reason = fmt.Sprintf("No machine of the resource group has %s.", name)
		default:
			out.Limit = resource.Format(name, most)
			out.Reason = fmt.Sprintf("No machine of the resource group has %s: the most that any machine has is %s.", wholeAmount(name, amount), resource.ForPeople(name, most))
		}
		v.add(out)
	}
}

// most returns the largest amount of a slot on an agent.
func (v *verdict) most(slot int) (most int64) {
	for i := range v.c.agents {
		most = max(most, v.c.agents[i].offer[slot])
	}
	return most
}

// host checks for an agent with the required architecture and volumes.
func (v *verdict) host() {
	r := v.request
	if r.Architecture != "" && !v.any(func(a *Agent) bool { return a.Architecture == r.Architecture }) {
		have := map[string]bool{}
		for i := range v.c.agents {
			have[v.c.agents[i].src.Architecture] = true
		}
		v.add(Impossible{
			Field: "architecture", Requested: r.Architecture, Limit: strings.Join(slices.Sorted(maps.Keys(have)), ", "),
			Reason: fmt.Sprintf("No machine of the resource group has the processor architecture %s.", r.Architecture),
		})
	}
	for _, name := range r.Volumes {
		if !v.any(func(a *Agent) bool { return slices.Contains(a.Volumes, name) }) {
			v.add(Impossible{
				Field: "mounts", Requested: name,
				Reason: fmt.Sprintf("No machine of the resource group has mounted the volume %s.", name),
			})
		}
	}
}

func (v *verdict) any(is func(*Agent) bool) bool {
	return slices.ContainsFunc(v.c.agents, func(a agent) bool { return is(a.src) })
}

// whole checks each kernel, and all of them together.
func (v *verdict) whole() {
	r := v.request
	var hosts []int
	for i := range v.c.agents {
		a := v.c.agents[i].src
		if (r.Architecture == "" || a.Architecture == r.Architecture) && containsAll(a.Volumes, r.Volumes) {
			hosts = append(hosts, i)
		}
	}
	for i := range r.Kernels {
		needs, _ := v.c.needsOf(r.Kernels[i].Slots)
		steps := v.c.stepsOf(needs)
		if !slices.ContainsFunc(hosts, func(a int) bool { return v.fits(a, steps) }) {
			v.add(v.apart(hosts, steps, Impossible{
				Field: "slots", Requested: r.Kernels[i].Slots.String(),
				Reason: "No machine of the resource group has all of these amounts together, even when it is idle.",
			}))
		}
	}
	total := totalOf(r)
	for _, name := range total.Names() {
		var have int64
		for _, a := range hosts {
			have += v.c.agents[a].offer[v.c.number[name]]
		}
		if total[name] > have && len(v.list) == 0 {
			v.add(Impossible{
				Field: "kernels", Requested: fmt.Sprintf("%s %s", resource.Format(name, total[name]), name),
				Limit:  resource.Format(name, have),
				Reason: fmt.Sprintf("All machines of the resource group together have only %s.", wholeAmount(name, have)),
			})
		}
	}
}

// apart returns the rule that prevents a kernel from fitting, if there is one: shared hardware
// of partitions, or the group's rules for splitting and topology.
func (v *verdict) apart(hosts []int, steps []step, out Impossible) Impossible {
	if other, ok := v.miscounted(hosts, steps); ok {
		return other
	}
	if slices.ContainsFunc(hosts, func(a int) bool {
		return v.c.apart(a, func() bool { return v.fits(a, steps) })
	}) {
		out.Reason = "No machine of the resource group has partitions for all of these amounts together, because partitions share hardware."
		return out
	}
	if slices.ContainsFunc(hosts, func(a int) bool {
		return v.c.anywhere(a, func() bool { return v.fits(a, steps) })
	}) {
		out.Reason = "No machine of the resource group has devices for all of these amounts that are as near to each other as the resource group requires."
		out.Limit = string(v.topology)
		return out
	}
	if !slices.ContainsFunc(hosts, func(a int) bool { return v.filled(a, steps) }) {
		return out
	}
	for i := range steps {
		st := &steps[i]
		if name, most := v.c.slots[st.slot].name, v.c.slots[st.slot].most; v.c.slots[st.slot].rule == part && st.amount > most {
			return Impossible{
				Field: "slots." + name, Requested: resource.Format(name, st.amount), Limit: resource.Format(name, most),
				Reason: fmt.Sprintf("The resource group does not combine parts of several devices: more than %[2]s %[1]s must be whole devices.",
					name, resource.ForPeople(name, most)),
			}
		}
	}
	return out
}

// miscounted returns the slot that all agents with enough of everything give only in other
// amounts.
func (v *verdict) miscounted(hosts []int, steps []step) (out Impossible, ok bool) {
	var counts []int
	for _, i := range hosts {
		a := &v.c.agents[i]
		if slices.ContainsFunc(steps, func(st step) bool { return a.offer[st.slot] < st.amount }) {
			continue
		}
		slot := v.c.miscounted(i, steps)
		if slot < 0 {
			return out, false
		}
		name := v.c.slots[slot].name
		if out.Field == "" {
			out.Field = "slots." + name
			st := slices.IndexFunc(steps, func(st step) bool { return st.slot == slot || st.mate.amount > 0 && st.mate.slot == slot })
			amount := steps[st].amount
			if steps[st].slot != slot {
				amount = steps[st].mate.amount
			}
			out.Requested = resource.Format(name, amount)
		}
		if out.Field == "slots."+name {
			counts = append(counts, a.src.Counts[name]...)
		}
	}
	slices.Sort(counts)
	out.Limit = report.ListCounts(slices.Compact(counts))
	out.Reason = fmt.Sprintf("The machines of the resource group that have enough give a container %s %s, not %s.", out.Limit, strings.TrimPrefix(out.Field, "slots."), out.Requested)
	return out, out.Field != ""
}

// filled reports whether a kernel would fit on an agent if its group split amounts freely.
func (v *verdict) filled(a int, steps []step) bool {
	agent := &v.c.agents[a]
	split := agent.split
	agent.split = SplitFill
	defer func() { agent.split = split }()
	return split != SplitFill && v.fits(a, steps)
}

func (v *verdict) fits(a int, steps []step) bool {
	mark := len(v.c.taken)
	ok := v.c.fit(a, steps)
	v.c.undo(mark)
	return ok
}
