package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// clock runs a cluster through time. A placed session uses its devices until its lifetime is over.
// A preempted session ends after a grace period.
type clock struct {
	*plan.Snapshot
	t       *testing.T
	ends    map[uuid.UUID]time.Time // the actual ends
	started map[uuid.UUID]time.Time
	grace   time.Duration
	ended   map[uuid.UUID]bool   // the preempted sessions
	unknown func() time.Duration // the duration of a session whose end is unknown; nil: it never ends
}

func newClock(t *testing.T, s *plan.Snapshot) *clock {
	return &clock{
		Snapshot: s, t: t, ends: map[uuid.UUID]time.Time{}, started: map[uuid.UUID]time.Time{},
		grace: 30 * time.Second, ended: map[uuid.UUID]bool{},
	}
}

// decide plans once and executes the decisions.
func (c *clock) decide() []plan.Decision {
	c.t.Helper()
	c.hold()
	decisions := plan.Plan(c.Snapshot)
	used := replay(c.t, c.Snapshot, decisions).used
	for _, d := range decisions {
		for _, v := range d.Victims {
			i := slices.IndexFunc(c.Running, func(x plan.Running) bool { return x.SessionID == v })
			if i < 0 || c.Running[i].Leaving {
				c.t.Fatalf("%s is not there to end", nameOf(v))
			}
			c.Running[i].Leaving = true
			c.ends[v] = c.Now.Add(c.grace)
			c.ended[v] = true
		}
		r := find(c.Snapshot, d.SessionID)
		if !d.Placed() {
			r.Room = d.Waiting.Room
			continue
		}
		c.start(r, &d)
	}
	c.Pending = slices.DeleteFunc(c.Pending, func(r plan.Request) bool { return !c.started[r.SessionID].IsZero() })
	c.use(used)
	return decisions
}

// hold sums up the allocations of sessions, for orders that depend on them.
func (c *clock) hold() {
	c.Holdings = nil
	for _, x := range c.Running {
		slots := resource.Slots{}
		for _, h := range x.Holds {
			slots[h.Slot] += h.Amount
		}
		c.Holdings = append(c.Holdings, plan.Holding{Group: x.Group, Domain: x.Domain, Project: x.Project, Owner: x.Owner, Slots: slots})
	}
}

func (c *clock) use(used map[uuid.UUID]resource.Slots) {
	for i := range c.Agents {
		for j := range c.Agents[i].Devices {
			c.Agents[i].Devices[j].Used = used[c.Agents[i].Devices[j].ID].Clone()
		}
	}
}

func (c *clock) start(r *plan.Request, d *plan.Decision) {
	x := plan.Running{
		SessionID: r.SessionID, Owner: r.Owner, Project: r.Project, Domain: r.Domain, Group: r.Group,
		Priority: r.Priority, Since: c.Now,
	}
	if r.Together != nil {
		x.Together = r.Together.ID
	}
	for _, a := range d.Assignments {
		x.Holds = append(x.Holds, a.Allocs...)
		for i := range c.Agents {
			if c.Agents[i].ID == a.AgentID {
				c.Agents[i].LastUsed = c.Now
			}
		}
	}
	if r.Lifetime > 0 {
		x.Ends = c.Now.Add(r.Lifetime)
		c.ends[r.SessionID] = x.Ends
	} else if c.unknown != nil {
		c.ends[r.SessionID] = c.Now.Add(c.unknown())
	}
	c.started[r.SessionID] = c.Now
	c.Running = append(c.Running, x)
}

// next advances to the time of the next end, or to until. It returns false when it has reached
// until.
func (c *clock) next(until time.Time) bool {
	at := until
	for _, e := range c.ends {
		if e.Before(at) {
			at = e
		}
	}
	c.Now = at
	c.Running = slices.DeleteFunc(c.Running, func(x plan.Running) bool {
		e, known := c.ends[x.SessionID]
		if !known || e.After(at) {
			return false
		}
		delete(c.ends, x.SessionID)
		for _, h := range x.Holds {
			c.device(h.DeviceID).Used[h.Slot] -= h.Amount
		}
		return true
	})
	return at.Before(until)
}

func (c *clock) device(id uuid.UUID) *plan.Device {
	for i := range c.Agents {
		for j := range c.Agents[i].Devices {
			if d := &c.Agents[i].Devices[j]; d.ID == id {
				return d
			}
		}
	}
	c.t.Fatalf("no device %s", id)
	return nil
}
