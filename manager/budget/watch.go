package budget

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/ent"
	entbudget "github.com/berthhq/berth/ent/budget"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/price"
)

// watchEvery is the time between two checks of all budgets: how late a limit that is reached is
// reported, and how much longer sessions run that a budget ends.
const watchEvery = time.Minute

// Limits of a budget.
const (
	Soft = "soft"
	Hard = "hard"
)

// Reached is a limit of a budget that was reached.
type Reached struct {
	Budget *ent.Budget
	Scope  policy.Scope
	From   time.Time // beginning of the period
	Limit  string    // Soft or Hard
	Amount string    // of the limit, a decimal
	Spent  string    // a decimal
}

// String describes it for users.
func (r Reached) String() string {
	return fmt.Sprintf("the %s limit of %s was reached: %s is spent", r.Limit, r.Amount, r.Spent)
}

// Observer is notified once in each period of each limit that was reached, and once more if the
// manager is killed at that moment.
type Observer interface {
	BudgetReached(ctx context.Context, r Reached)
}

// Sessions ends sessions.
type Sessions interface {
	// EndOverBudget ends the running sessions of a scope that cost something.
	EndOverBudget(ctx context.Context, epoch int64, scope policy.Scope, one uuid.UUID, costs func(group uuid.UUID, slots resource.Slots) bool, why string) (int, error)
}

type meter struct {
	refused, reached *prometheus.CounterVec
	ended            prometheus.Counter
}

func newMeter(to prometheus.Registerer) meter {
	f := promauto.With(to)
	m := meter{
		refused: f.NewCounterVec(prometheus.CounterOpts{Name: "berth_budget_refused_sessions_total", Help: "Requests for sessions, or previews of them, that a budget refused."}, []string{"scope"}),
		reached: f.NewCounterVec(prometheus.CounterOpts{Name: "berth_budget_reached_total", Help: "Limits of budgets that were reached."}, []string{"scope", "limit"}),
		ended:   f.NewCounter(prometheus.CounterOpts{Name: "berth_budget_ended_sessions_total", Help: "Sessions that were ended because a budget was used up."}),
	}
	for _, scope := range []policy.Scope{policy.ScopeUser, policy.ScopeProject, policy.ScopeDomain} {
		m.refused.WithLabelValues(string(scope)).Add(0)
		for _, limit := range []string{Soft, Hard} {
			m.reached.WithLabelValues(string(scope), limit).Add(0)
		}
	}
	return m
}

// Lead reports limits that are reached, and ends the sessions of budgets that want it, until ctx ends.
func (s *Service) Lead(ctx context.Context, epoch int64, sessions Sessions) {
	for {
		if err := s.Watch(ctx, epoch, sessions); err != nil && ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, "watch budgets", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
	}
}

// Watch checks all budgets once.
func (s *Service) Watch(ctx context.Context, epoch int64, sessions Sessions) error {
	sys := viewer.SystemContext(ctx)
	prices, err := price.Load(sys, s.Client)
	if err != nil {
		return err
	}
	list, err := s.Client.Budget.Query().Order(entbudget.ByID()).All(sys)
	if err != nil {
		return fmt.Errorf("read budgets: %w", err)
	}
	for _, b := range list {
		now := clock.Now()
		a := account{s.Client, prices, b, periodOf(b, now), now}
		if !a.period.active {
			continue
		}
		spent, err := a.spent(sys, a.period.from)
		if err != nil {
			return err
		}
		if err := s.settle(sys, a, spent); err != nil {
			return err
		}
		if b.AtHard == entbudget.AtHardTerminate && reaches(spent, b.HardMicros) {
			if err := s.end(ctx, epoch, sessions, a, spent); err != nil {
				return err
			}
		}
	}
	return nil
}

func reaches(spent *big.Rat, limit *int64) bool {
	return limit != nil && spent.Cmp(new(big.Rat).SetInt64(*limit)) >= 0
}

// settle reports the limits that were reached in this period and not reported yet.
func (s *Service) settle(ctx context.Context, a account, spent *big.Rat) error {
	b, scope, from := a.budget, policy.Scope(""), a.period.from
	scope, _ = scopeOf(b)
	before := func(at *time.Time) bool { return at == nil || at.Before(from) }
	if reaches(spent, b.SoftMicros) && before(b.SoftReached) {
		s.reached(ctx, Reached{b, scope, from, Soft, price.Format(*b.SoftMicros), price.Rounded(spent)})
		if err := s.Client.Budget.UpdateOne(b).SetSoftReached(from).Exec(ctx); err != nil && !ent.IsNotFound(err) {
			return fmt.Errorf("note the soft limit of budget %s: %w", b.ID, err)
		}
	}
	if reaches(spent, b.HardMicros) && before(b.HardReached) {
		s.reached(ctx, Reached{b, scope, from, Hard, price.Format(*b.HardMicros), price.Rounded(spent)})
		if err := s.Client.Budget.UpdateOne(b).SetHardReached(from).Exec(ctx); err != nil && !ent.IsNotFound(err) {
			return fmt.Errorf("note the hard limit of budget %s: %w", b.ID, err)
		}
	}
	return nil
}

// reached counts, logs and passes on a limit that was reached.
func (s *Service) reached(ctx context.Context, r Reached) {
	s.meter.reached.WithLabelValues(string(r.Scope), r.Limit).Inc()
	s.Logger.InfoContext(ctx, "budget reached", "budget", r.Budget.ID, "scope", r.Scope, "limit", r.Limit, "amount", r.Amount, "spent", r.Spent)
	if s.Observer != nil {
		s.Observer.BudgetReached(ctx, r)
	}
}

// end ends the running sessions of a budget that is used up.
func (s *Service) end(ctx context.Context, epoch int64, sessions Sessions, a account, spent *big.Rat) error {
	scope, one := scopeOf(a.budget)
	costs := func(group uuid.UUID, slots resource.Slots) bool {
		perHour, _ := a.prices.PerHour(slots, group, a.now)
		return perHour.Sign() > 0
	}
	why := fmt.Sprintf("the budget of the %s is used up", scope)
	if scope != policy.ScopeDomain {
		why += fmt.Sprintf(": %s of %s %s is spent", price.Rounded(spent), price.Format(*a.budget.HardMicros), s.Currency)
	}
	n, err := sessions.EndOverBudget(ctx, epoch, scope, one, costs, why)
	s.meter.ended.Add(float64(n))
	return err
}
