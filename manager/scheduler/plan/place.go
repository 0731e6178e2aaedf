package plan

import (
	"slices"
	"strings"

	"github.com/berthhq/berth/internal/resource"
)

// need is an amount of a slot.
type need struct {
	slot   int
	amount int64
	mated  bool // taken from the device of another need
}

// step takes one slot of a kernel from an agent's devices, together with the slot that must
// come from the same devices.
type step struct {
	need
	mate  need // amount 0: none
	spare int  // slot whose better devices this step leaves for later steps; -1: none
}

// needsOf converts a request to needs; false if an amount is negative.
func (c *cluster) needsOf(slots resource.Slots) (needs []need, ok bool) {
	for name, amount := range slots {
		if amount < 0 {
			return nil, false
		}
		if amount > 0 {
			needs = append(needs, need{slot: c.number[name], amount: amount})
		}
	}
	slices.SortFunc(needs, func(a, b need) int { return a.slot - b.slot })
	return needs, true
}

// stepsOf orders the needs: first slots that can come from any device, then whole devices,
// which are hardest to find, then parts, and memory by itself last. It marks needs that
// accompany another one.
func (c *cluster) stepsOf(needs []need) []step {
	order := make([]int, len(needs))
	for i := range order {
		order[i] = i
	}
	rank := func(i int) int {
		r := 2 * int(c.slots[needs[i].slot].rule)
		if strings.HasSuffix(c.slots[needs[i].slot].name, ".mem") {
			r++
		}
		return r
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(a) - rank(b) })
	var steps []step
	for _, i := range order {
		if needs[i].mated {
			continue
		}
		st := step{need: needs[i], spare: -1}
		if m := c.memoryBeside(st.need, needs); m >= 0 && !needs[m].mated {
			if c.joins(st.need, needs[m], needs) {
				needs[m].mated = true
				st.mate = needs[m]
			} else {
				st.spare = needs[m].slot
			}
		}
		steps = append(steps, st)
	}
	return steps
}

// memoryBeside returns the device memory that is requested together with n, or -1.
func (c *cluster) memoryBeside(n need, needs []need) int {
	family, _, onDevice := strings.Cut(c.slots[n.slot].name, ".")
	if !onDevice {
		return -1
	}
	return slices.IndexFunc(needs, func(m need) bool {
		return m.slot != n.slot && c.slots[m.slot].name == family+".mem"
	})
}

// joins reports whether memory accompanies n: it accompanies shares if there are any, else
// whole devices, and never a slot that excludes it or is another name for it.
func (c *cluster) joins(n, memory need, needs []need) bool {
	if c.slots[n.slot].rule == pooled || c.slots[n.slot].exclude[memory.slot] ||
		c.slots[n.slot].unified && c.slots[memory.slot].unified {
		return false
	}
	if c.slots[n.slot].rule == part {
		return true
	}
	family, _, _ := strings.Cut(c.slots[n.slot].name, ".")
	return !slices.ContainsFunc(needs, func(o need) bool {
		return c.slots[o.slot].name == family+".shares" && !c.slots[o.slot].exclude[memory.slot]
	})
}

// mayFit is a quick check of sums before fit. It never rejects needs that fit.
func (a *agent) mayFit(c *cluster, needs []need) bool {
	for _, n := range needs {
		if a.reach(c, n) < n.amount {
			return false
		}
	}
	return true
}

// fit takes the steps from the agent's devices, or takes nothing.
func (c *cluster) fit(a int, steps []step) bool { return c.fitFrom(a, steps, 0) }

// fitFrom is fit whose first part comes from a device in the state pick, unless pick is 0.
func (c *cluster) fitFrom(a int, steps []step, pick uint64) bool {
	mark := len(c.taken)
	if !c.takeSteps(a, steps, pick) {
		c.rollback(mark)
		return false
	}
	if !c.agents[a].flat {
		c.arrange(a, steps, mark)
	}
	c.refresh(&c.agents[a])
	return true
}

// hasRoom reports whether the steps fit on an agent, and takes nothing.
func (c *cluster) hasRoom(a int, steps []step) bool {
	mark := len(c.taken)
	defer func() { c.rollback(mark) }()
	return c.takeSteps(a, steps, 0)
}

// takeSteps takes the steps. If one fails, the entries before it stay in the journal.
func (c *cluster) takeSteps(a int, steps []step, pick uint64) bool {
	if c.miscounted(a, steps) >= 0 {
		return false
	}
	mark := len(c.taken)
	for i := range steps {
		var ok bool
		switch st := &steps[i]; c.slots[st.slot].rule {
		case pooled:
			ok = c.takePooled(a, st)
		case whole:
			ok = c.takeWhole(a, st)
		case part:
			ok = c.takePart(a, st, pick)
			pick = 0
		}
		if !ok {
			return c.searches(a) && c.search(a, steps, mark)
		}
	}
	return c.near(a, steps, mark) || c.search(a, steps, mark)
}

// miscounted returns a slot that the agent gives only in other amounts, or -1.
func (c *cluster) miscounted(a int, steps []step) int {
	counts := c.agents[a].src.Counts
	if len(counts) == 0 {
		return -1
	}
	for i := range steps {
		for _, n := range []need{steps[i].need, steps[i].mate} {
			if n.amount > 0 && !counts.Allow(c.slots[n.slot].name, n.amount) {
				return n.slot
			}
		}
	}
	return -1
}

// takePooled prefers a device that has the whole amount.
func (c *cluster) takePooled(a int, st *step) bool {
	devices := c.agents[a].devices
	for i := range devices {
		if c.available(&devices[i], st.slot) >= st.amount {
			c.take(a, i, st.slot, st.amount)
			return true
		}
	}
	left := st.amount
	for i := range devices {
		if free := min(left, c.available(&devices[i], st.slot)); free > 0 {
			c.take(a, i, st.slot, free)
			left -= free
		}
	}
	return left == 0
}

// takeWhole takes idle devices.
func (c *cluster) takeWhole(a int, st *step) bool {
	left, mate := st.amount, st.mate.amount
	for left > 0 {
		i := c.pickIdle(a, st, left)
		if i < 0 {
			return false
		}
		left -= c.takeBoth(a, i, st, left, &mate)
	}
	return mate == 0
}

// takePart takes from one device if the largest is large enough, and otherwise splits as the
// group configures.
func (c *cluster) takePart(a int, st *step, pick uint64) bool {
	left, mate, most := st.amount, st.mate.amount, c.agents[a].most[st.slot]
	beyond := left > most
	if beyond && c.agents[a].split == SplitEvenly {
		return c.takeEvenly(a, st)
	}
	for beyond && left >= most {
		i := c.pickIdle(a, st, left)
		if i < 0 {
			return false
		}
		left -= c.takeBoth(a, i, st, left, &mate)
	}
	if left > 0 && beyond && c.agents[a].split == SplitNone {
		return false
	}
	if left > 0 {
		i := c.pickTight(a, st, left, mate, pick)
		if i < 0 {
			return false
		}
		c.takeBoth(a, i, st, left, &mate)
	}
	return mate == 0
}

// takeBoth takes up to left of a device's slot, and up to mate of the accompanying slot.
func (c *cluster) takeBoth(a, i int, st *step, left int64, mate *int64) int64 {
	d := &c.agents[a].devices[i]
	amount := min(left, d.capacity[st.slot]-d.used[st.slot])
	beside := int64(0)
	if *mate > 0 {
		beside = min(*mate, d.capacity[st.mate.slot]-d.used[st.mate.slot])
	}
	c.take(a, i, st.slot, amount)
	if beside > 0 {
		c.take(a, i, st.mate.slot, beside)
		*mate -= beside
	}
	return amount
}

// pickIdle returns an idle device with no more of the slot than requested: the one with the
// most of the mate, or with the least of slots that others will need; among these, the one
// that shares the least hardware.
func (c *cluster) pickIdle(a int, st *step, left int64) int {
	devices, pick, worth, lost := c.agents[a].devices, -1, int64(0), int64(0)
	for i := range devices {
		d := &devices[i]
		if n := d.capacity[st.slot]; n == 0 || n > left || !d.idle() {
			continue
		}
		w := int64(0)
		if st.mate.amount > 0 {
			w = d.capacity[st.mate.slot]
		} else if st.spare >= 0 {
			w = -d.capacity[st.spare]
		}
		if pick >= 0 && w < worth {
			continue
		}
		l := int64(0)
		if d.pool != nil {
			l = d.lost()
		}
		if pick < 0 || w > worth || l < lost {
			pick, worth, lost = i, w, l
		}
	}
	return pick
}

// pickTight returns the device that would have the least left over; only devices in the state
// from, unless it is 0.
func (c *cluster) pickTight(a int, st *step, amount, mate int64, from uint64) int {
	devices, pick, least, spared := c.agents[a].devices, -1, int64(0), int64(0)
	for i := range devices {
		d := &devices[i]
		if from != 0 && d.key != from {
			continue
		}
		free := c.available(d, st.slot)
		if free < amount || mate > 0 && c.available(d, st.mate.slot) < mate {
			continue
		}
		spare := int64(0)
		if st.spare >= 0 {
			spare = d.capacity[st.spare]
		}
		if pick < 0 || free < least || free == least && spare < spared {
			pick, least, spared = i, free, spare
		}
	}
	return pick
}
