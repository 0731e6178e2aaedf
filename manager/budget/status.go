package budget

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entbudget "github.com/berthhq/berth/ent/budget"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/price"
	"github.com/berthhq/berth/manager/stats"
)

// lookback is the time of which the forecast uses the mean.
const lookback = 7 * 24 * time.Hour

// BudgetStatus is where a budget stands. Amounts are decimals.
type BudgetStatus struct {
	From                         time.Time
	To                           *time.Time
	Spent, Promised, PerDay      string
	SoftReachedAt, HardReachedAt *time.Time
}

// List returns the budgets that the viewer can see: those of the objects that are named, or only
// those that apply to the viewer's own sessions.
func (s *Service) List(ctx context.Context, domain, project, person *uuid.UUID, mine bool) ([]*ent.Budget, error) {
	q := s.Client.Budget.Query().Where(of(domain, project, person)...)
	if v := viewer.From(ctx); mine && v != nil {
		q.Where(entbudget.Or(entbudget.UserID(v.User), entbudget.ProjectIDIn(v.Projects...), entbudget.DomainID(v.Domain)))
	}
	list, err := q.Order(entbudget.ByCreatedAt(), entbudget.ByID()).Limit(maxBudgets + 1).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read budgets: %w", err)
	}
	if len(list) > maxBudgets {
		return nil, problem.Invalid("domain", "there are more than %d budgets: name a domain, a project or a user", maxBudgets).WithLimit(fmt.Sprint(maxBudgets))
	}
	return list, nil
}

// Status computes where budgets that the viewer can see stand.
func (s *Service) Status(ctx context.Context, b *ent.Budget) (*BudgetStatus, error) {
	prices, err := price.Load(ctx, s.Client)
	if err != nil {
		return nil, err
	}
	now := clock.Now()
	p := periodOf(b, now)
	a := account{s.Client, prices, b, p, now}
	spent, err := a.spent(ctx, p.from)
	if err != nil {
		return nil, err
	}
	promised, err := a.promised(ctx)
	if err != nil {
		return nil, err
	}
	since := later(now.Add(-lookback), b.StartsAt)
	recent, err := a.spent(ctx, since)
	if err != nil {
		return nil, err
	}
	rate := perDay(recent, now.Sub(since))
	out := &BudgetStatus{From: p.from, To: p.to, Spent: price.Rounded(spent), Promised: price.Rounded(promised), PerDay: price.Rounded(rate)}
	out.SoftReachedAt = forecast(spent, rate, b.SoftMicros, now, p)
	out.HardReachedAt = forecast(spent, rate, b.HardMicros, now, p)
	return out, nil
}

// perDay returns the mean cost of a day. Less than an hour of data counts as an hour.
func perDay(cost *big.Rat, during time.Duration) *big.Rat {
	return new(big.Rat).Mul(cost, big.NewRat(int64(24*time.Hour), int64(max(during, time.Hour))))
}

// forecast returns when a limit is reached if the costs go on at a rate per day; nil if it is not
// reached in the period. For a limit that was reached it returns now.
func forecast(spent, rate *big.Rat, limit *int64, now time.Time, p period) *time.Time {
	if limit == nil {
		return nil
	}
	left := new(big.Rat).Sub(new(big.Rat).SetInt64(*limit), spent)
	if left.Sign() <= 0 {
		return &now
	}
	if rate.Sign() == 0 {
		return nil
	}
	days, _ := new(big.Rat).Quo(left, rate).Float64() // a day, not a sum
	if days > 36_500 {
		return nil
	}
	at := now.Add(time.Duration(days * float64(24*time.Hour))).Truncate(time.Second)
	if p.to != nil && !at.Before(*p.to) {
		return nil
	}
	return &at
}

// period is the current period of a budget.
type period struct {
	from   time.Time
	to     *time.Time
	active bool // now is in it
}

// periodOf returns the current period. That of a budget that has not begun, or has ended, is not active.
func periodOf(b *ent.Budget, now time.Time) period {
	if b.Period == entbudget.PeriodTotal {
		return period{b.StartsAt, b.EndsAt, !now.Before(b.StartsAt) && (b.EndsAt == nil || now.Before(*b.EndsAt))}
	}
	loc, err := time.LoadLocation(b.TimeZone)
	if err != nil { // the time zones of this machine are older than those of the one that checked it
		loc = time.UTC
	}
	y, m, _ := now.In(loc).Date()
	end := time.Date(y, m+1, 1, 0, 0, 0, 0, loc).UTC()
	return period{later(time.Date(y, m, 1, 0, 0, 0, 0, loc).UTC(), b.StartsAt), &end, !now.Before(b.StartsAt)}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// account computes the sums of one budget.
type account struct {
	client *ent.Client
	prices *price.Table
	budget *ent.Budget
	period period
	now    time.Time
}

// spent returns the cost from a time until now.
func (a account) spent(ctx context.Context, from time.Time) (*big.Rat, error) {
	to := a.now
	if a.period.to != nil && to.After(*a.period.to) {
		to = *a.period.to
	}
	return stats.Spent(viewer.SystemContext(ctx), a.client, a.prices,
		stats.UsageReportInput{From: from, To: &to, User: a.budget.UserID, Project: a.budget.ProjectID, Domain: a.budget.DomainID})
}

// promisedBy sums the slots of pending and running sessions with a lifetime, times the seconds until
// the end of their lifetime or of the period. %s is the column of the budget's object.
const promisedBy = `SELECT s.resource_group_id, e.key,
  SUM(e.value::numeric * GREATEST(0, EXTRACT(EPOCH FROM LEAST(COALESCE(s.started_at, $2::timestamptz) + make_interval(secs => s.lifetime), $3::timestamptz) - $2::timestamptz)))::text
FROM sessions s JOIN kernels k ON k.session_id = s.id AND k.terminated_at IS NULL, jsonb_each_text(k.slots) e
WHERE s.%s = $1 AND s.terminated_at IS NULL AND s.lifetime IS NOT NULL AND s.status <> 'terminating' GROUP BY 1, 2`

// promised returns what pending and running sessions with a lifetime will still cost at the prices of now.
func (a account) promised(ctx context.Context) (*big.Rat, error) {
	sum := new(big.Rat)
	if !a.period.active {
		return sum, nil
	}
	end := a.now.AddDate(100, 0, 0)
	if a.period.to != nil {
		end = *a.period.to
	}
	scope, one := scopeOf(a.budget)
	column := map[policy.Scope]string{policy.ScopeUser: "owner_id", policy.ScopeProject: "project_id", policy.ScopeDomain: "domain_id"}[scope]
	rows, err := a.client.QueryContext(ctx, fmt.Sprintf(promisedBy, column), one, a.now, end)
	if err != nil {
		return nil, fmt.Errorf("sum what sessions will cost: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var group uuid.UUID
		var slot, unitSeconds string
		if err := rows.Scan(&group, &slot, &unitSeconds); err != nil {
			return nil, fmt.Errorf("sum what sessions will cost: %w", err)
		}
		steps, ok := new(big.Rat).SetString(unitSeconds)
		micros, priced := a.prices.Slot(slot, group, a.now)
		if !ok || !priced {
			continue
		}
		for range resource.Scale(slot) {
			steps.Mul(steps, big.NewRat(10, 1))
		}
		sum.Add(sum, price.Cost(slot, steps, micros))
	}
	return sum, rows.Err()
}

// scopeOf returns the object of a budget.
func scopeOf(b *ent.Budget) (policy.Scope, uuid.UUID) {
	switch {
	case b.UserID != nil:
		return policy.ScopeUser, *b.UserID
	case b.ProjectID != nil:
		return policy.ScopeProject, *b.ProjectID
	}
	return policy.ScopeDomain, *b.DomainID
}
