package sim

import (
	"context"
	"time"

	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/manager/agents"
	"github.com/berthhq/berth/manager/group"
)

// trouble injects a fault now and then until the story ends.
func (w *world) trouble(until time.Time) {
	w.enter("trouble")
	kinds := []func(){w.killManager, w.election.depose, w.killAgent, w.reboot, w.partition, w.unplug, w.cordon, w.drain, w.change}
	var likely []func() // each seed selects its kinds of faults
	for _, k := range kinds {
		if w.chance(0.5) {
			likely = append(likely, k)
		}
	}
	for len(likely) > 0 {
		wait := w.between(2*time.Second, 30*time.Second)
		if sleep(w.ctx, wait) != nil {
			return
		}
		w.enter("trouble")
		if time.Now().After(until) || w.over {
			return
		}
		likely[w.IntN(len(likely))]()
	}
}

func (w *world) anyMachine() *machine { return w.machines[w.IntN(len(w.machines))] }

// later reverts a fault, at the latest when the story ends.
func (w *world) later(d time.Duration, what string, f func()) {
	w.play(func() {
		if sleep(w.ctx, d) == nil {
			w.enter(what)
			f()
		}
	})
}

func (w *world) killManager() { w.managers[w.IntN(len(w.managers))].die() }

// killAgent ends the agent's process; containers continue.
func (w *world) killAgent() { w.down(w.anyMachine(), (*machine).stop, "agent of") }

// reboot ends an agent's process and all containers of its machine.
func (w *world) reboot() { w.down(w.anyMachine(), (*machine).reboot, "machine") }

func (w *world) down(m *machine, stop func(*machine), what string) {
	if !m.up {
		return
	}
	d := w.between(500*time.Millisecond, 8*time.Second)
	if w.chance(0.4) {
		d = w.between(8*time.Second, 70*time.Second)
	}
	w.logf("%s %s ends for %s", what, m.name, d.Round(time.Millisecond))
	stop(m)
	w.later(d, m.name+" begins again", func() {
		if !m.up {
			m.begin()
		}
	})
}

// partition interrupts the connection between a machine and managers, in one or both directions.
func (w *world) partition() {
	m := w.anyMachine()
	c := []cut{{true, true}, {true, false}, {false, true}}[w.IntN(3)]
	d := w.between(time.Second, 70*time.Second)
	whom := w.IntN(3) // 2: both managers
	w.logf("%s is cut off from %d (%v) for %s", m.name, whom, c, d.Round(time.Millisecond))
	for i := range w.managers {
		if whom != 2 && whom != i {
			continue
		}
		m.cut[i], m.troubled = c, time.Now()
		w.later(d, m.name+" is connected again", func() { m.cut[i], m.troubled = cut{}, time.Now() })
		for _, t := range m.tunnels {
			if t.p.index == i {
				w.later(w.between(keepalive-20*time.Second, keepalive), m.name+" misses answers", t.endIfCut)
			}
		}
	}
}

func (t *tunnel) endIfCut() {
	if t.m.cut[t.p.index].any() {
		t.end()
	}
}

// unplug makes the accelerators of a machine disappear for a while.
func (w *world) unplug() {
	m := w.anyMachine()
	if m.unplugged {
		return
	}
	m.unplugged = true
	m.publish(m.report())
	w.later(w.between(time.Second, 40*time.Second), m.name+" has its devices again", func() {
		m.unplugged = false
		m.publish(m.report())
	})
}

// cordon cordons or uncordons an agent.
func (w *world) cordon() {
	m, open := w.anyMachine(), w.chance(0.5)
	id, err := w.plain.Agent.Query().Where(agent.Name(m.name)).OnlyID(w.ctx)
	if err != nil {
		return // the agent has never connected
	}
	w.byAdmin(func(ctx context.Context, p *process) error {
		_, err := p.Agents.UpdateAgent(ctx, agents.UpdateAgentInput{ID: id, Schedulable: &open})
		return err
	})
}

// drain drains an agent for a while.
func (w *world) drain() {
	m, after := w.anyMachine(), 1+w.IntN(30)
	action := []agent.DrainAction{agent.DrainActionReschedule, agent.DrainActionTerminate}[w.IntN(2)]
	id, err := w.plain.Agent.Query().Where(agent.Name(m.name)).OnlyID(w.ctx)
	if err != nil {
		return // the agent has never connected
	}
	w.byAdmin(func(ctx context.Context, p *process) error {
		_, err := p.Agents.DrainAgent(ctx, agents.DrainAgentInput{ID: id, After: &after, Action: action})
		return err
	})
	w.later(w.between(10*time.Second, 60*time.Second), m.name+" is no longer drained", func() {
		w.byAdmin(func(ctx context.Context, p *process) error {
			_, err := p.Agents.UndrainAgent(ctx, agents.UndrainAgentInput{ID: id})
			return err
		})
	})
}

// one draws one of several values.
func one[T any](w *world, of ...T) *T { return &of[w.IntN(len(of))] }

// change changes the options of a group.
func (w *world) change() {
	in := group.UpdateResourceGroupInput{ID: *one(w, w.place.groups...)}
	in.Strategy = one[resourcegroup.Strategy](w, "pack", "concentrated", "dispersed", "roundrobin")
	in.Order = one[resourcegroup.Order](w, "fifo", "lifo", "drf", "fair_share")
	in.HoldAfter = one(w, 0, 5, 600)
	in.LostPolicy = one[resourcegroup.LostPolicy](w, "wait", "fail", "reschedule")
	in.LostAfter = one(w, 0, 10, 300)
	in.Preemption = one[resourcegroup.Preemption](w, "off", "terminate", "reschedule")
	in.PreemptionScope = one[resourcegroup.PreemptionScope](w, "user", "project", "group")
	in.PreemptionAfter = one(w, 0, 10)
	w.byAdmin(func(ctx context.Context, p *process) error {
		_, err := p.groups.UpdateResourceGroup(ctx, in)
		return err
	})
}

func (w *world) byAdmin(f func(ctx context.Context, p *process) error) {
	p := w.managers[w.IntN(len(w.managers))]
	if p.dead {
		return
	}
	w.play(func() {
		err := p.at(w.place.admin, func(ctx context.Context) error { return f(ctx, p) })
		w.enter("answer for the admin")
		if err != nil {
			w.logf("the admin is refused: %v", err)
		}
	})
}

// heal ends all faults.
func (w *world) heal() {
	w.calm = true
	for _, m := range w.machines {
		m.cut = [2]cut{}
		if m.unplugged {
			m.unplugged = false
			m.publish(m.report())
		}
		if !m.up {
			m.begin()
		}
		for _, t := range m.tunnels {
			t.end() // ends calls that hang
		}
	}
	if _, err := w.plain.Agent.Update().SetSchedulable(true).ClearDrainDeadline().ClearDrainAction().Save(w.ctx); err != nil {
		panic(err)
	}
	if _, err := w.plain.ResourceGroup.Update().SetHoldAfter(-1).SetPreemption(resourcegroup.PreemptionOff).Save(w.ctx); err != nil {
		panic(err)
	}
}
