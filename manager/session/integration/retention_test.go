package integration

import (
	"log/slog"
	"testing"
	"time"

	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/clustertest"
)

// Ended sessions and their allocations, which usage is computed from, are kept unless an operator
// limits the retention. With a limit, all rows of an old session are deleted, and no row of another
// session.
func TestEndedSessionsAreKeptAsLongAsSet(t *testing.T) {
	c := clustertest.New(t, 1)
	ctx := c.System(t)
	old, young, runs := c.Create(t, clustertest.SessionInput(nil, "exit", "0")), c.Create(t, clustertest.SessionInput(nil, "exit", "0")), c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitForEnd(t, old)
	c.WaitForEnd(t, young)
	c.WaitFor(t, runs, lifecycle.Running)
	ago := time.Now().AddDate(0, 0, -100)
	if _, err := c.Client.ExecContext(ctx, "UPDATE sessions SET created_at = $1 WHERE id IN ($2, $3)", ago, old, runs); err != nil {
		t.Fatal(err)
	}
	c.Client.Session.UpdateOneID(old).SetTerminatedAt(ago).ExecX(ctx)
	sweep := func() int {
		audit.New(audit.Config{Client: c.Client, Logger: slog.Default()}).Sweep(t.Context(), time.Now())
		return c.Client.Session.Query().CountX(ctx)
	}
	if n := sweep(); n != 3 {
		t.Errorf("%d sessions are left without a limit", n)
	}
	c.Manager.As(t, c.Superadmin).Must(t, `mutation { setRetention(input: {category: SESSIONS, days: 90}) { retention { days } } }`, nil, nil)
	if n := sweep(); n != 2 || c.Client.Session.Query().Where(session.ID(old)).ExistX(ctx) {
		t.Errorf("%d sessions are left", n)
	}
	if n := c.Client.Kernel.Query().CountX(ctx); n != 2 {
		t.Errorf("%d kernels are left", n)
	}
	if c.Client.Allocation.Query().Where(allocation.SessionID(old)).ExistX(ctx) || !c.Client.Allocation.Query().Where(allocation.SessionID(young)).ExistX(ctx) {
		t.Error("allocations of another session than the old one are gone")
	}
	if len(c.History(t, young)) == 0 {
		t.Error("the history of a young session is gone")
	}
}
