package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/budget"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/manager/policy"
)

// A limit of a budget that is reached is in the audit log, and the people concerned get one notice in each period, also if it is
// reported again.
func TestBudgetReached(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	ctx := w.System(t)
	add := func(change func(*ent.BudgetCreate)) *ent.Budget {
		c := w.Client.Budget.Create().SetPeriod("month").SetStartsAt(time.Now()).SetHardMicros(10_000_000)
		change(c)
		return c.SaveX(ctx)
	}
	month := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for scope, c := range map[policy.Scope]struct {
		budget *ent.Budget
		who    *ent.User
		other  *ent.User
	}{
		policy.ScopeUser:    {add(func(c *ent.BudgetCreate) { c.SetUserID(w.A.Member.ID) }), w.A.Member, w.A.Lead},
		policy.ScopeProject: {add(func(c *ent.BudgetCreate) { c.SetProjectID(w.A.Project.ID) }), w.A.Lead, w.A.Member},
	} {
		before := notices(t, m.As(t, c.who))
		unconcerned := notices(t, m.As(t, c.other))
		for _, from := range []time.Time{month, month, month.AddDate(0, 1, 0)} {
			manager.BudgetReached(ctx, m.Manager, budget.Reached{Budget: c.budget, Scope: scope, From: from, Limit: budget.Soft, Amount: "8", Spent: "8.5"})
		}
		managertest.Eventually(t, "two notices", func() bool { return len(notices(t, m.As(t, c.who))) == len(before)+2 })
		if n := len(notices(t, m.As(t, c.other))); n != len(unconcerned) {
			t.Errorf("%s: another user has %d more notices", scope, n-len(unconcerned))
		}
		var log struct {
			AuditEntries struct {
				Edges []struct{ Node struct{ Message string } }
			}
		}
		m.As(t, w.Superadmin).Must(t, `query($id: ID!) { auditEntries(where: {entityID: $id}) { edges { node { message } } } }`, managertest.Vars{"id": c.budget.ID}, &log)
		if len(log.AuditEntries.Edges) != 3 || !strings.Contains(log.AuditEntries.Edges[0].Node.Message, "8.5") {
			t.Errorf("%s: the audit log has %+v", scope, log.AuditEntries.Edges)
		}
	}
}

func notices(t *testing.T, as *managertest.Client) (list []uuid.UUID) {
	t.Helper()
	var got struct {
		Notices struct {
			Edges []struct{ Node struct{ ID uuid.UUID } }
		}
	}
	as.Must(t, `{ notices { edges { node { id } } } }`, nil, &got)
	for _, e := range got.Notices.Edges {
		list = append(list, e.Node.ID)
	}
	return list
}
