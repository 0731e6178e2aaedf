// Package budget limits what the sessions of a user, a project or a domain can cost. Sessions are
// refused under a lock, so that requests at the same time do not exceed a budget together, and the
// leader reports limits that are reached. All state is in PostgreSQL. Package session uses it through
// an interface.
package budget

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	entbudget "github.com/berthhq/berth/ent/budget"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/price"
	"github.com/berthhq/berth/manager/store"
)

// maxBudgets limits the budgets of one list, and maxOf those of one user, project or domain.
const (
	maxBudgets = 1000
	maxOf      = 10
)

// Config has the dependencies of a Service.
type Config struct {
	Client   *ent.Client
	Currency string                // empty: DefaultCurrency
	Observer Observer              // nil: limits that are reached are only counted and logged
	Registry prometheus.Registerer // nil: no metrics
	Logger   *slog.Logger
}

// DefaultCurrency is the currency of a cluster that names no other.
const DefaultCurrency = "credits"

// Service writes budgets and enforces them.
type Service struct {
	Config
	meter meter
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Currency == "" {
		cfg.Currency = DefaultCurrency
	}
	return &Service{cfg, newMeter(cfg.Registry)}
}

// SetBudgetInput is a new budget or, with ID, changes one.
type SetBudgetInput struct {
	ID                    *uuid.UUID
	Domain, Project, User *uuid.UUID
	Period                *entbudget.Period
	StartsAt, EndsAt      *time.Time
	TimeZone              *string
	Soft, Hard            *string
	AtHard                *entbudget.AtHard
}

// BudgetPayload is a budget after a change.
type BudgetPayload struct{ Budget *ent.Budget }

// DeleteBudgetInput names a budget.
type DeleteBudgetInput struct{ ID uuid.UUID }

// DeleteBudgetPayload is the id of the deleted budget.
type DeleteBudgetPayload struct{ ID uuid.UUID }

// SetBudget creates a budget or changes the limits of one.
func (s *Service) SetBudget(ctx context.Context, in SetBudgetInput) (*BudgetPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if in.ID != nil {
		return s.change(ctx, in)
	}
	if err := s.maySet(ctx, in.Domain, in.Project, in.User); err != nil {
		return nil, err
	}
	if err := in.checkPeriod(clock.Now()); err != nil {
		return nil, err
	}
	soft, hard, err := in.limits(nil, nil)
	if err != nil {
		return nil, err
	}
	out := &BudgetPayload{}
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) (err error) {
		sys := viewer.SystemContext(ctx)
		if err := store.Lock(ctx, tx, "budgets of "+first(in.Domain, in.Project, in.User).String()); err != nil {
			return err
		}
		n, err := tx.Budget.Query().Where(of(in.Domain, in.Project, in.User)...).Count(sys)
		if err != nil {
			return fmt.Errorf("count budgets: %w", err)
		}
		if n >= maxOf {
			return problem.Exhausted("there are already %d budgets for the same: change or delete one", n).WithLimit(fmt.Sprint(maxOf))
		}
		out.Budget, err = tx.Budget.Create().SetPeriod(*in.Period).SetStartsAt(*in.StartsAt).SetNillableEndsAt(in.EndsAt).SetNillableTimeZone(in.TimeZone).
			SetNillableSoftMicros(soft).SetNillableHardMicros(hard).SetNillableAtHard(in.AtHard).
			SetNillableDomainID(in.Domain).SetNillableProjectID(in.Project).SetNillableUserID(in.User).Save(sys)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Budget = out.Budget.Unwrap()
	return out, nil
}

// change changes the limits of a budget.
func (s *Service) change(ctx context.Context, in SetBudgetInput) (*BudgetPayload, error) {
	if in.Domain != nil || in.Project != nil || in.User != nil || in.Period != nil || in.StartsAt != nil || in.EndsAt != nil || in.TimeZone != nil {
		return nil, problem.Invalid("id", "only soft, hard and atHard of a budget can be changed: create another budget for another period")
	}
	b, err := s.Client.Budget.Get(ctx, *in.ID)
	if err != nil {
		return nil, permit.Missing(err, "budget", "id")
	}
	if err := s.maySet(ctx, b.DomainID, b.ProjectID, b.UserID); err != nil {
		return nil, err
	}
	out := &BudgetPayload{}
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		sys := viewer.SystemContext(ctx)
		now, err := tx.Budget.Query().Where(entbudget.ID(b.ID)).ForUpdate().Only(sys)
		if err != nil {
			return permit.Missing(err, "budget", "id")
		}
		soft, hard, err := in.limits(now.SoftMicros, now.HardMicros)
		if err != nil {
			return err
		}
		up := tx.Budget.UpdateOne(now)
		// A limit that was changed can be reached again.
		if in.Soft != nil {
			set(soft, up.ClearSoftReached().ClearSoftMicros().SetSoftMicros)
		}
		if in.Hard != nil {
			set(hard, up.ClearHardReached().ClearHardMicros().SetHardMicros)
		}
		if in.AtHard != nil {
			up.SetAtHard(*in.AtHard)
		}
		out.Budget, err = up.Save(sys)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Budget = out.Budget.Unwrap()
	return out, nil
}

// DeleteBudget deletes a budget.
func (s *Service) DeleteBudget(ctx context.Context, in DeleteBudgetInput) (*DeleteBudgetPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	b, err := s.Client.Budget.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "budget", "id")
	}
	if err := s.maySet(ctx, b.DomainID, b.ProjectID, b.UserID); err != nil {
		return nil, err
	}
	if err := s.Client.Budget.DeleteOne(b).Exec(viewer.SystemContext(ctx)); err != nil {
		return nil, permit.Missing(err, "budget", "id")
	}
	return &DeleteBudgetPayload{ID: in.ID}, nil
}

// maySet checks that the viewer can change the budgets of exactly one object. Being the owner does
// not suffice, and an administrator of a domain cannot change the budget of the domain.
func (s *Service) maySet(ctx context.Context, domain, project, person *uuid.UUID) error {
	v := viewer.From(ctx)
	if !v.Allows(access.TokenAdmin) {
		return problem.Forbidden("the access token lacks the scope %s", access.TokenAdmin)
	}
	n := 0
	for _, one := range []*uuid.UUID{domain, project, person} {
		if one != nil {
			n++
		}
	}
	if n != 1 {
		return problem.Invalid("input", "name exactly one of domain, project and user, not %d", n)
	}
	var on access.Object
	above := false
	switch {
	case domain != nil:
		if _, err := s.Client.Domain.Get(ctx, *domain); err != nil {
			return permit.Missing(err, "domain", "domain")
		}
		above = true
	case project != nil:
		p, err := s.Client.Project.Get(ctx, *project)
		if err != nil {
			return permit.Missing(err, "project", "project")
		}
		on = access.Object{ID: p.ID, Domain: p.DomainID, Project: p.ID}
	default:
		u, err := s.Client.User.Get(ctx, *person)
		if err != nil {
			return permit.Missing(err, "user", "user")
		}
		on = access.Object{ID: u.ID, Domain: u.DomainID}
		above = u.Role == user.RoleSuperadmin || u.Role == user.RoleMonitor
	}
	if v.Superadmin() || !above && (v.AdminOf(on.Domain) || v.May(access.Update, access.ResourcePolicy, on)) {
		return nil
	}
	if domain != nil {
		return problem.Forbidden("only superadmins may change the budget of a domain")
	}
	return problem.Forbidden("only administrators of the domain may change budgets")
}

// checkPeriod checks the times of a new budget and completes them.
func (in *SetBudgetInput) checkPeriod(now time.Time) error {
	if in.Period == nil {
		month := entbudget.PeriodMonth
		in.Period = &month
	}
	if in.StartsAt == nil {
		in.StartsAt = &now
	}
	if in.TimeZone != nil {
		if _, err := time.LoadLocation(*in.TimeZone); err != nil || *in.TimeZone == "Local" || *in.TimeZone == "" {
			return problem.Invalid("timeZone", "is not the name of a time zone, such as Europe/Berlin")
		}
	}
	if in.EndsAt == nil {
		return nil
	}
	if *in.Period != entbudget.PeriodTotal {
		return problem.Invalid("endsAt", "a monthly budget does not end: use the period TOTAL")
	}
	if !in.EndsAt.After(*in.StartsAt) || !in.EndsAt.After(now) {
		return problem.Invalid("endsAt", "must be in the future and after startsAt")
	}
	return nil
}

// limits returns the limits after the change of those of a budget.
func (in *SetBudgetInput) limits(soft, hard *int64) (_, _ *int64, err error) {
	for _, one := range []struct {
		field string
		text  *string
		into  **int64
	}{{"soft", in.Soft, &soft}, {"hard", in.Hard, &hard}} {
		switch {
		case one.text == nil:
		case *one.text == "none":
			*one.into = nil
		default:
			micros, err := price.Parse(one.field, *one.text)
			if err != nil {
				return nil, nil, err
			}
			*one.into = &micros
		}
	}
	switch {
	case soft == nil && hard == nil:
		return nil, nil, problem.Invalid("hard", "a budget needs a soft or a hard limit")
	case soft != nil && hard != nil && *soft > *hard:
		return nil, nil, problem.Invalid("soft", "%s is above the hard limit of %s", price.Format(*soft), price.Format(*hard)).WithLimit(price.Format(*hard))
	}
	return soft, hard, nil
}

// set calls a setter with a limit, if there is one.
func set(limit *int64, to func(int64) *ent.BudgetUpdateOne) {
	if limit != nil {
		to(*limit)
	}
}

func first(list ...*uuid.UUID) uuid.UUID {
	for _, one := range list {
		if one != nil {
			return *one
		}
	}
	return uuid.Nil
}

// of matches the budgets of the objects that are named.
func of(domain, project, person *uuid.UUID) (list []predicate.Budget) {
	if domain != nil {
		list = append(list, entbudget.DomainID(*domain))
	}
	if project != nil {
		list = append(list, entbudget.ProjectID(*project))
	}
	if person != nil {
		list = append(list, entbudget.UserID(*person))
	}
	return list
}
