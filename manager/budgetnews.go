package manager

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/budget"
	"github.com/berthhq/berth/manager/notice"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/store"
)

// budgetNews writes limits of budgets that were reached to the audit log, and notifies people.
type budgetNews struct{ *Manager }

// BudgetReached writes one row, and a notice for each person.
func (m budgetNews) BudgetReached(ctx context.Context, r budget.Reached) {
	ctx = viewer.SystemContext(ctx)
	m.audit.Record(ctx, audit.Entry{Action: "budgetReached", Entity: access.ResourcePolicy, ID: r.Budget.ID, Message: r.String()})
	if err := m.notify(ctx, r); err != nil && ctx.Err() == nil {
		m.log.WarnContext(ctx, "notify people of a budget", "budget", r.Budget.ID, "error", err)
	}
}

func (m budgetNews) notify(ctx context.Context, r budget.Reached) error {
	name, people, err := m.concerned(ctx, r)
	if err != nil {
		return fmt.Errorf("find the people of a budget: %w", err)
	}
	use := notice.BudgetUse{
		Key: fmt.Sprintf("%s %s %s", r.Budget.ID, r.From.UTC().Format(time.DateOnly), r.Limit), Name: name, Users: people, Percent: percent(r.Spent, r.Amount),
		Spent: r.Spent + " " + m.budgets.Currency, Limit: r.Amount + " " + m.budgets.Currency, Subject: r.Budget.ID,
	}
	var committed func()
	err = store.InTx(ctx, m.client, func(tx *ent.Tx) (err error) {
		committed, err = m.notices.BudgetReached(ctx, tx, use)
		return err
	})
	if err != nil {
		return err
	}
	committed()
	return nil
}

// concerned returns the name of what a budget limits, and who gets a notice: the user, the administrators of the project, or those
// of the domain; superadmins if there is no administrator.
func (m budgetNews) concerned(ctx context.Context, r budget.Reached) (name string, people []uuid.UUID, err error) {
	b, active := r.Budget, user.StatusEQ(user.StatusActive)
	admins := m.client.User.Query().Where(active, user.RoleEQ(user.RoleAdmin))
	switch r.Scope {
	case policy.ScopeUser:
		u, err := m.client.User.Get(ctx, *b.UserID)
		if err != nil {
			return "", nil, err
		}
		return u.Email, []uuid.UUID{u.ID}, nil
	case policy.ScopeProject:
		p, err := m.client.Project.Get(ctx, *b.ProjectID)
		if err != nil {
			return "", nil, err
		}
		name = p.Name
		people, err = m.client.User.Query().Where(active, user.HasMembershipsWith(membership.ProjectID(p.ID), membership.Admin(true))).IDs(ctx)
		if err != nil || len(people) > 0 {
			return name, people, err
		}
		admins.Where(user.DomainID(p.DomainID))
	default:
		d, err := m.client.Domain.Get(ctx, *b.DomainID)
		if err != nil {
			return "", nil, err
		}
		name = d.Name
		admins.Where(user.DomainID(d.ID))
	}
	if people, err = admins.IDs(ctx); err != nil || len(people) > 0 {
		return name, people, err
	}
	people, err = m.client.User.Query().Where(active, user.RoleEQ(user.RoleSuperadmin)).IDs(ctx)
	return name, people, err
}

// percent returns the share of a limit that is spent; 100 if the limit is 0.
func percent(spent, limit string) int {
	s, _ := strconv.ParseFloat(spent, 64)
	l, _ := strconv.ParseFloat(limit, 64)
	if l == 0 {
		return 100
	}
	return int(100 * s / l)
}
