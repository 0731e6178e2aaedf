package scheduler_test

import (
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/resourcegroup"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/scheduler"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session"
)

// TestRoomOutlivesTheLeader ends a session for another one, and lets a second leader continue from
// the rows. The second leader ends no other session, and the room goes to the session for which it
// was made, although another session waits for longer.
func TestRoomOutlivesTheLeader(t *testing.T) {
	client, db := identitytest.Store(t)
	b := newHarness(t, client, db)
	b.agents(t, 1, 4, 0)
	ctx := b.system(t)
	b.group.Update().SetPreemption(resourcegroup.PreemptionTerminate).SetPreemptionAfter(0).ExecX(ctx)
	ask := func(cores int64, priority int, preemptible bool) uuid.UUID {
		t.Helper()
		made, err := b.sessions.CreateSession(b.As(t, b.A.Member), session.CreateSessionInput{
			Image: "registry.test/prog:latest", Command: []string{"true"}, Priority: &priority, Preemptible: &preemptible,
			Slots: resource.Slots{resource.CPU: cores * 1000, resource.Mem: 1 << 30},
		})
		if err != nil {
			t.Fatal(err)
		}
		return made.Session.ID
	}
	decide := func(term *scheduler.Term) map[uuid.UUID]plan.Decision {
		t.Helper()
		all, err := term.Decide(ctx)
		if err != nil {
			t.Fatal(err)
		}
		by := map[uuid.UUID]plan.Decision{}
		for _, d := range all {
			by[d.SessionID] = d
		}
		return by
	}

	low := ask(4, 1, true)
	first := b.scheduler.Begin(ctx, b.epoch)
	d := decide(first)[low]
	if err := first.Commit(ctx, b.epoch, []plan.Decision{d}); err != nil {
		t.Fatal(err)
	}
	client.Session.UpdateOneID(low).SetStatus(lifecycle.Running).SetStartedAt(time.Now().Add(-time.Hour)).ExecX(ctx)

	first = b.scheduler.Begin(ctx, b.epoch)
	high := ask(3, 50, false)
	d = decide(first)[high]
	if len(d.Victims) != 1 || d.Victims[0] != low {
		t.Fatalf("it ends %v: %+v", d.Victims, d.Waiting)
	}
	if err := first.MakeRoom(ctx, b.epoch-1, []plan.Decision{d}); !errdefs.IsAborted(err) {
		t.Errorf("under an epoch that is over: %v", err)
	}
	if s := client.Session.GetX(ctx, low); s.Status != lifecycle.Running {
		t.Fatalf("it is %s anyway", s.Status)
	}
	if err := first.MakeRoom(ctx, b.epoch, []plan.Decision{d}); err != nil {
		t.Fatal(err)
	}
	if s := client.Session.GetX(ctx, low); s.Status != lifecycle.Terminating || *s.TerminationReason != entsession.TerminationReasonPreempted {
		t.Fatalf("it is %s, for %v", s.Status, s.TerminationReason)
	}
	if s := client.Session.GetX(ctx, high); s.Pending == nil || s.Pending.Room == nil || len(s.Pending.Room.Parts) == 0 {
		t.Fatalf("its row has %+v", s.Pending)
	}
	if d := decide(first)[high]; d.Placed() || len(d.Victims) > 0 || d.Waiting.Room == nil {
		t.Errorf("the next pass: %+v", d)
	}

	second := b.scheduler.Begin(ctx, b.epoch)
	older := ask(2, 50, false)
	client.Session.UpdateOneID(high).SetPriority(49).ExecX(ctx) // the other session is before it now
	got := decide(second)
	if d := got[high]; d.Placed() || len(d.Victims) > 0 || d.Waiting.Room == nil {
		t.Errorf("the next leader: %+v", d)
	}
	client.Allocation.Update().Where(allocation.SessionID(low)).SetFreedAt(time.Now()).ExecX(ctx)
	client.Session.UpdateOneID(low).SetStatus(lifecycle.Terminated).SetTerminatedAt(time.Now()).ExecX(ctx)
	got = decide(b.scheduler.Begin(ctx, b.epoch))
	if d := got[high]; !d.Placed() {
		t.Errorf("it waits though its room is there: %+v", d.Waiting)
	}
	if d := got[older]; d.Placed() {
		t.Error("another one has taken its room")
	}
}
