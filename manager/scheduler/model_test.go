package scheduler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler"
	msession "github.com/berthhq/berth/manager/session"
)

// happenings changes rows as the services do, and publishes an event for each change, except for a
// lost percentage.
type happenings struct {
	*harness
	*rand.Rand
	lost int // percent of the events
}

func (h *happenings) publish(ctx context.Context, e event.Event) {
	if h.IntN(100) >= h.lost {
		h.bus.Publish(ctx, e)
	}
}

// one returns one of the rows, or nil.
func one[T any](r *rand.Rand, rows []T) (none T) {
	if len(rows) == 0 {
		return none
	}
	return rows[r.IntN(len(rows))]
}

// happen makes one change.
func (h *happenings) happen(t *testing.T) {
	ctx := h.system(t)
	switch h.IntN(8) {
	case 0, 1, 2:
		if _, err := h.create(h.As(t, h.A.Member), resource.Slots{resource.CPU: int64(500 * (1 + h.IntN(4))), resource.Mem: 1 << 30}); err != nil && !errdefs.IsResourceExhausted(err) {
			t.Fatal(err)
		}
	case 3: // a session with allocations ends, or returns to the queue
		s := one(h.Rand, h.Client.Session.Query().Where(session.StatusIn(lifecycle.Scheduled, lifecycle.Running)).AllX(ctx))
		if s == nil {
			return
		}
		h.Client.Allocation.Update().Where(allocation.SessionID(s.ID)).SetFreedAt(time.Now()).ExecX(ctx)
		u := s.Update().AddVersion(1)
		if h.IntN(3) == 0 {
			u.SetStatus(lifecycle.Pending).AddAttempt(1).SetRetryAt(time.Now().Add(time.Hour)).ExecX(ctx)
		} else {
			u.SetStatus(lifecycle.Terminated).SetTerminatedAt(time.Now()).ExecX(ctx)
		}
		h.publish(ctx, event.Event{Topic: event.Session, ID: s.ID})
	case 4: // a waiting session is cancelled or changed
		s := one(h.Rand, h.Client.Session.Query().Where(session.StatusEQ(lifecycle.Pending)).AllX(ctx))
		if s == nil {
			return
		}
		if h.IntN(2) == 0 {
			s.Update().AddVersion(1).SetPriority(h.IntN(50)).ExecX(ctx)
		} else {
			s.Update().AddVersion(1).SetStatus(lifecycle.Cancelled).SetTerminatedAt(time.Now()).ExecX(ctx)
		}
		h.publish(ctx, event.Event{Topic: event.Session, ID: s.ID})
	case 5: // an agent is cordoned or uncordoned, disappears or joins
		a := one(h.Rand, h.Client.Agent.Query().AllX(ctx))
		switch h.IntN(3) {
		case 0:
			a.Update().SetSchedulable(!a.Schedulable).ExecX(ctx)
		case 1:
			a.Update().SetStatus(one(h.Rand, []agent.Status{agent.StatusAlive, agent.StatusLost, agent.StatusTerminated})).ExecX(ctx)
		default:
			d := h.Client.Device.Query().Where(device.AgentID(a.ID)).FirstX(ctx)
			d.Update().SetHealth(one(h.Rand, []device.Health{device.HealthHealthy, device.HealthUnhealthy})).ExecX(ctx)
		}
		h.publish(ctx, event.Event{Topic: event.Agent, ID: a.ID})
	case 6:
		a := h.Client.Agent.Create().SetName(fmt.Sprint("late-", h.Uint64())).SetArchitecture(architecture).SetResourceGroup(h.group).SaveX(ctx)
		for name, capacity := range map[string]resource.Slots{"cpu": {resource.CPU: 2000}, "mem": {resource.Mem: 4 << 30}} {
			h.Client.Device.Create().SetAgent(a).SetDeviceID(name).SetCapacity(capacity).SetHealth("healthy").ExecX(ctx)
		}
		h.publish(ctx, event.Event{Topic: event.Agent, ID: a.ID})
	case 7: // a limit is added, changed or removed
		h.Client.PolicyAttachment.Delete().ExecX(ctx)
		if h.IntN(3) > 0 {
			p := h.Client.ResourcePolicy.Create().SetName(fmt.Sprint("p", h.Uint64())).SetTotalSlots(resource.Slots{resource.CPU: int64(1000 * h.IntN(20))}).SaveX(ctx)
			h.Client.PolicyAttachment.Create().SetPolicy(p).SetUser(h.A.Member).ExecX(ctx)
		}
		h.publish(ctx, event.Event{Topic: event.Pending})
	}
}

// The model of a leader agrees with the rows: at once if no event is lost, and after a repair
// otherwise.
func TestModelIsWhatTheRowsSay(t *testing.T) {
	for _, lost := range []int{0, 60} {
		t.Run(fmt.Sprintf("%d percent of the events lost", lost), func(t *testing.T) {
			client, db := identitytest.Store(t)
			b := newHarness(t, client, db)
			h := &happenings{b, rand.New(rand.NewPCG(1, uint64(lost))), lost}
			b.agents(t, 4, 8, 1)
			ctx := b.system(t)
			term := b.scheduler.Begin(ctx, b.epoch)
			placed := 0
			for round := range 120 {
				for range h.IntN(4) {
					h.happen(t)
				}
				decisions, err := term.Decide(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if lost > 0 {
					if err := term.Repair(ctx); err != nil {
						t.Fatal(err)
					}
					if decisions, err = term.Decide(ctx); err != nil {
						t.Fatal(err)
					}
				}
				if diff, err := term.Differs(ctx); err != nil || diff != "" {
					t.Fatalf("round %d, before the commit: %v %s", round, err, diff)
				}
				placed += len(decisions)
				if err := term.Commit(ctx, b.epoch, decisions); err != nil {
					t.Fatal(err)
				}
				if diff, err := term.Differs(ctx); err != nil || diff != "" {
					t.Fatalf("round %d, after the commit: %v %s", round, err, diff)
				}
			}
			if placed < 20 || client.Session.Query().Where(session.StatusEQ(lifecycle.Scheduled)).CountX(ctx) == 0 {
				t.Errorf("%d placed: too little has happened", placed)
			}
		})
	}
}

// Sessions of another manager are placed even if none of its events arrives.
func TestLostEventsAreRepaired(t *testing.T) {
	client, db := identitytest.Store(t)
	b := newHarness(t, client, db)
	b.agents(t, 2, 8, 0)
	stop := b.lead(t)
	defer stop()
	deaf := b.other(client)
	for range 5 {
		if _, err := deaf.create(b.As(t, b.A.Member), smallSlots); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "sessions without an event are placed", func() bool { return b.count(t, "scheduled") == 5 })
}

// A leader that does not notice that it was replaced places no more sessions, and no session is
// placed twice.
func TestReplacedLeaderPlacesNothing(t *testing.T) {
	client, db := identitytest.Store(t)
	b := newHarness(t, client, db)
	b.agents(t, 3, 8, 0)
	ctx := b.system(t)
	stop := b.lead(t)
	defer stop()
	core := resource.Slots{resource.CPU: 1000, resource.Mem: 1 << 30}
	for range 10 {
		if _, err := b.create(b.As(t, b.A.Member), core); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "the first leader places", func() bool { return b.count(t, "scheduled") == 10 })
	next := b.other(client)
	next.epoch = 2
	if _, err := leader.RaiseFence(ctx, client, next.epoch, elected); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := b.create(b.As(t, b.A.Member), core); err != nil { // only the first leader gets the event
			t.Fatal(err)
		}
	}
	if n := b.count(t, "scheduled"); n != 10 {
		t.Errorf("%d are placed, the last of them under an epoch that is over", n)
	}
	stopNext := next.lead(t)
	defer stopNext()
	wait.Until(t, "the second leader places", func() bool { return b.count(t, "scheduled") == 24 }) // of 24 cores
	held := map[uuid.UUID]int64{}
	for _, a := range client.Allocation.Query().Where(allocation.Slot(resource.CPU)).AllX(ctx) {
		held[a.DeviceID] += a.Amount
	}
	for id, amount := range held {
		if amount > 8000 {
			t.Errorf("device %s holds %d of 8000", id, amount)
		}
	}
	if n := b.count(t, "pending"); n != 6 {
		t.Errorf("%d wait", n)
	}
}

// other is another manager, whose events do not reach the harness.
func (b *harness) other(client *ent.Client) *harness {
	o := *b
	o.bus = event.New(nil, nil)
	policies := policy.New(policy.Config{Client: client, Bus: o.bus})
	o.scheduler = scheduler.New(scheduler.Config{Client: client, Bus: o.bus, Policies: policies, Logger: logger()})
	o.sessions = msession.New(msession.Config{
		Client: client, Bus: o.bus, Images: image.New(image.Config{Client: client}), Fitter: o.scheduler, Policies: policies, Logger: logger(),
	})
	return &o
}
