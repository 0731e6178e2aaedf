package scheduler_test

import (
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/scheduler"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// decided returns a harness with n waiting sessions of one core each, and the decisions that place
// them on one agent of four cores.
func decided(t *testing.T, n int) (*harness, *scheduler.Term, []uuid.UUID, []plan.Decision) {
	t.Helper()
	client, db := identitytest.Store(t)
	b := newHarness(t, client, db)
	b.agents(t, 1, 4, 0)
	var ids []uuid.UUID
	for range n {
		id, err := b.create(b.As(t, b.A.Member), resource.Slots{resource.CPU: 1000, resource.Mem: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	term := b.scheduler.Begin(b.system(t), b.epoch)
	all, err := term.Decide(b.system(t))
	if err != nil {
		t.Fatal(err)
	}
	return b, term, ids, all
}

// untouched fails if anything is allocated or a session does not wait.
func (b *harness) untouched(t *testing.T) {
	t.Helper()
	ctx := b.system(t)
	if n := b.Client.Allocation.Query().CountX(ctx); n > 0 {
		t.Errorf("%d allocations", n)
	}
	if n := b.Client.Session.Query().Where(session.StatusNEQ(lifecycle.Pending)).CountX(ctx); n > 0 {
		t.Errorf("%d sessions moved", n)
	}
	if n := b.Client.Kernel.Query().Where(kernel.Or(kernel.AgentIDNotNil(), kernel.LaunchEpochGT(0), kernel.StatusNEQ(lifecycle.Pending))).CountX(ctx); n > 0 {
		t.Errorf("%d kernels moved", n)
	}
}

func TestCommitPlacesTheBatch(t *testing.T) {
	b, term, ids, all := decided(t, 3)
	ctx := b.system(t)
	gone := ids[1] // cancelled between the decision and the commit
	b.Client.Session.UpdateOneID(gone).SetStatus(lifecycle.Cancelled).ExecX(ctx)
	if err := term.Commit(ctx, b.epoch, all); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		s := b.Client.Session.Query().Where(session.ID(id)).WithKernels(func(q *ent.KernelQuery) { q.WithAllocations() }).OnlyX(ctx)
		k := s.Edges.Kernels[0]
		moves := b.Client.SessionEvent.Query().Where(sessionevent.SessionID(id), sessionevent.ToStatusEQ(lifecycle.Scheduled)).AllX(ctx)
		if id == gone {
			if s.Status != lifecycle.Cancelled || len(k.Edges.Allocations) > 0 || len(moves) > 0 || k.AgentID != nil {
				t.Errorf("the cancelled one: %s with %d allocations, %d moves", s.Status, len(k.Edges.Allocations), len(moves))
			}
			continue
		}
		if s.Status != lifecycle.Scheduled || s.Version != 2 || s.StatusMessage != "placed" || s.ScheduledAt == nil || s.DeadlineAt == nil || s.Pending != nil {
			t.Errorf("session %d: %+v", i, s)
		}
		if k.Status != lifecycle.Scheduled || k.AgentID == nil || k.LaunchEpoch != 1 {
			t.Errorf("kernel %d: %+v", i, k)
		}
		held := resource.Slots{}
		for _, a := range k.Edges.Allocations {
			held[a.Slot] += a.Amount
			if a.SessionID != id || a.AgentID != *k.AgentID || a.OwnerID != s.OwnerID || a.ProjectID != s.ProjectID || a.DomainID != s.DomainID || a.FreedAt != nil {
				t.Errorf("allocation %+v", a)
			}
		}
		if held[resource.CPU] != 1000 || held[resource.Mem] != 1<<30 || len(held) != 2 {
			t.Errorf("session %d holds %v", i, held)
		}
		if len(moves) != 1 || *moves[0].FromStatus != lifecycle.Pending || moves[0].Result != sessionevent.ResultSuccess ||
			moves[0].Attempt != 1 || moves[0].Phase != "schedule" || moves[0].Message != "placed" || moves[0].Steps == nil {
			t.Errorf("history of session %d: %+v", i, moves)
		}
	}
}

func TestCommitIsRefusedAsAWhole(t *testing.T) {
	for name, bend := range map[string]func(b *harness, all []plan.Decision) (epoch int64){
		"in an earlier epoch": func(b *harness, _ []plan.Decision) int64 { return b.epoch - 1 },
		"when a device's capacity is exceeded": func(b *harness, all []plan.Decision) int64 {
			all[2].Assignments[0].Allocs[0].Amount = 64 << 32
			return b.epoch
		},
		"when an allocation has amount zero": func(b *harness, all []plan.Decision) int64 {
			all[2].Assignments[0].Allocs[0].Amount = 0
			return b.epoch
		},
		"when a kernel is missing": func(b *harness, all []plan.Decision) int64 {
			all[2].Assignments[0].KernelID = uuid.New()
			return b.epoch
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, term, _, all := decided(t, 3)
			err := term.Commit(b.system(t), bend(b, all), all)
			if err == nil {
				t.Error("it is committed")
			}
			b.untouched(t)
		})
	}
}

// The commit checks the current limits: a limit that was lowered after the decision counts.
func TestCommitKeepsLimitsOfNow(t *testing.T) {
	b, term, _, all := decided(t, 4)
	ctx := b.system(t)
	pol := b.Client.ResourcePolicy.Create().SetName("two").SetTotalSlots(resource.Slots{resource.CPU: 2000}).SaveX(ctx)
	b.Client.PolicyAttachment.Create().SetPolicy(pol).SetUser(b.A.Member).ExecX(ctx)
	if err := term.Commit(ctx, b.epoch, all); err != nil {
		t.Fatal(err)
	}
	var cpu int64
	for _, a := range b.Client.Allocation.Query().Where(allocation.Slot(resource.CPU)).AllX(ctx) {
		cpu += a.Amount
	}
	if cpu != 2000 {
		t.Errorf("%d/1000 cpu are held under a limit of 2", cpu)
	}
}

// The reason of a session that does not fit is stored once. A changed reason adds an entry to the
// history.
func TestExplainBatch(t *testing.T) {
	b, term, ids, all := decided(t, 6)
	ctx := b.system(t)
	var waits []plan.Decision
	for _, d := range all {
		if !d.Placed() {
			waits = append(waits, d)
		}
	}
	if len(waits) != 2 {
		t.Fatalf("%d of 6 wait for four cores", len(waits))
	}
	if err := term.Explain(ctx, b.epoch-1, waits); !errdefs.IsAborted(err) {
		t.Errorf("under an epoch that is over: %v", err)
	}
	for range 2 {
		if err := term.Explain(ctx, b.epoch, waits); err != nil {
			t.Fatal(err)
		}
		if _, err := term.Decide(ctx); err != nil { // it reads the rows that were written
			t.Fatal(err)
		}
	}
	explained := b.Client.Session.Query().Where(session.IDIn(ids...), session.PendingNotNil()).AllX(ctx)
	if len(explained) != 2 {
		t.Fatalf("%d are explained", len(explained))
	}
	for _, s := range explained {
		if s.Pending.Summary == "" || s.StatusMessage != s.Pending.Summary {
			t.Errorf("%q, %+v", s.StatusMessage, s.Pending)
		}
		if n := b.Client.SessionEvent.Query().Where(sessionevent.SessionID(s.ID), sessionevent.CodeHasPrefix("waiting")).CountX(ctx); n != 1 {
			t.Errorf("%d entries for one reason", n)
		}
	}
}
