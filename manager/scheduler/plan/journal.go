package plan

import "github.com/google/uuid"

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
