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
	"github.com/berthhq/berth/manager/store"
)

// Ask is a requested session, or several with the same request.
type Ask struct {
	policy.Place
	Slots    resource.Slots // of all containers of one session
	Sessions int
	Lifetime *int // seconds; nil: it is not known
	Member   bool // the owner belongs to the project, so that they can see its budgets
	Stored   bool // the session is already pending, with these slots
}

// Binding returns the ids of the budgets with a hard limit for sessions at a place.
func (s *Service) Binding(ctx context.Context, at policy.Place) ([]uuid.UUID, error) {
	list, err := s.Client.Budget.Query().Where(entbudget.HardMicrosNotNil(),
		entbudget.Or(entbudget.UserID(at.User), entbudget.ProjectID(at.Project), entbudget.DomainID(at.Domain))).IDs(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read budgets: %w", err)
	}
	return list, nil
}

// Admit refuses sessions that would exceed one of the budgets: if what was spent, what pending and
// running sessions with a lifetime will still cost, and what the sessions cost in their lifetime is
// more than the hard limit. Without a lifetime, only what is already spent or promised decides.
// Sessions without a price are never refused. The transaction locks the budgets until it ends.
func (s *Service) Admit(ctx context.Context, tx *ent.Tx, budgets []uuid.UUID, ask Ask) error {
	if len(budgets) == 0 {
		return nil
	}
	var locks []string
	for _, one := range budgets {
		locks = append(locks, "budget "+one.String())
	}
	if err := store.Lock(ctx, tx, locks...); err != nil {
		return err
	}
	client, now := tx.Client(), clock.Now()
	prices, err := price.Load(ctx, client)
	if err != nil {
		return err
	}
	perHour, _ := prices.PerHour(ask.Slots, ask.Group, now)
	if perHour.Sign() == 0 {
		return nil
	}
	list, err := client.Budget.Query().Where(entbudget.IDIn(budgets...), entbudget.HardMicrosNotNil()).Order(entbudget.ByID()).All(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("read budgets: %w", err)
	}
	for _, b := range list {
		if err := s.admit(ctx, account{client, prices, b, periodOf(b, now), now}, perHour, ask); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) admit(ctx context.Context, a account, perHour *big.Rat, ask Ask) error {
	if !a.period.active {
		return nil
	}
	spent, err := a.spent(ctx, a.period.from)
	if err != nil {
		return err
	}
	promised, err := a.promised(ctx)
	if err != nil {
		return err
	}
	asked := a.asked(perHour, ask)
	if ask.Stored {
		promised.Sub(promised, asked)
	}
	sum := new(big.Rat).Add(spent, promised)
	hard := new(big.Rat).SetInt64(*a.budget.HardMicros)
	if sum.Cmp(hard) < 0 && sum.Add(sum, asked).Cmp(hard) <= 0 {
		return nil
	}
	scope, _ := scopeOf(a.budget)
	s.meter.refused.WithLabelValues(string(scope)).Inc()
	return s.refusal(a, ask, spent, promised, asked)
}

// asked returns what the sessions cost until the end of their lifetime or of the period.
func (a account) asked(perHour *big.Rat, ask Ask) *big.Rat {
	if ask.Lifetime == nil {
		return new(big.Rat)
	}
	during := time.Duration(*ask.Lifetime) * time.Second
	if a.period.to != nil {
		during = min(during, a.period.to.Sub(a.now))
	}
	cost := new(big.Rat).Mul(perHour, big.NewRat(during.Microseconds(), time.Hour.Microseconds()))
	return cost.Mul(cost, new(big.Rat).SetInt64(int64(max(ask.Sessions, 1))))
}

// refusal is the error of a session that exceeds a budget. It has numbers if the owner of the session can see the budget.
func (s *Service) refusal(a account, ask Ask, spent, promised, asked *big.Rat) error {
	scope, _ := scopeOf(a.budget)
	if scope == policy.ScopeDomain || scope == policy.ScopeProject && !ask.Member {
		return problem.Exhausted("the budget of the %s does not allow this session", scope).WithField("slots")
	}
	when := ""
	if a.period.to != nil {
		when = " until " + a.period.to.UTC().Format("2006-01-02 15:04 UTC")
	}
	text := fmt.Sprintf("the budget of the %s allows %s %s%s: %s is spent", scope, price.Format(*a.budget.HardMicros), s.Currency, when, price.Rounded(spent))
	if promised.Sign() > 0 {
		text += ", " + price.Rounded(promised) + " promised to sessions with a lifetime"
	}
	if asked.Sign() > 0 {
		text += ", and this request costs " + price.Rounded(asked)
	}
	return problem.Exhausted("%s", text).WithField("slots").WithLimit(price.Format(*a.budget.HardMicros))
}
