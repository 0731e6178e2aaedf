package idle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/idleactivity"
	"github.com/berthhq/berth/ent/idlechecker"
	"github.com/berthhq/berth/ent/kernel"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/store"
)

// rulebook has all rules with their bindings.
type rulebook struct {
	checkers []bound
	limits   []policy.Limit // limits with an idle timeout
}

type bound struct {
	Rule
	places []place
}

// rules reads the current rules.
func (s *Service) rules(ctx context.Context) (*rulebook, error) {
	list, err := s.Client.IdleChecker.Query().Where(idlechecker.Enabled(true), idlechecker.HasBindings()).WithBindings().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read idle checkers: %w", err)
	}
	b := &rulebook{}
	for _, c := range list {
		one := bound{Rule: ruleOf(c)}
		for _, at := range c.Edges.Bindings {
			one.places = append(one.places, placeOf(at))
		}
		b.checkers = append(b.checkers, one)
	}
	limits, err := s.Policies.All(ctx, s.Client)
	if err != nil {
		return nil, err
	}
	b.limits = slices.DeleteFunc(limits, func(l policy.Limit) bool { return l.IdleTimeout == nil })
	return b, nil
}

func (b *rulebook) empty() bool { return len(b.checkers) == 0 && len(b.limits) == 0 }

// any reports whether a rule is of the kind.
func (b *rulebook) any(is func(*Rule) bool) bool {
	return slices.ContainsFunc(b.checkers, func(c bound) bool { return is(&c.Rule) })
}

// of returns the rules that apply to a session: all its checkers, and the policy with the
// shortest timeout.
func (b *rulebook) of(s *ent.Session) []Rule {
	var rules []Rule
	for _, c := range b.checkers {
		if slices.ContainsFunc(c.places, func(p place) bool { return p.has(s) }) {
			rules = append(rules, c.Rule)
		}
	}
	at := policy.Place{Domain: s.DomainID, Project: s.ProjectID, User: s.OwnerID, Group: s.ResourceGroupID}
	if s.KeypairID != nil {
		at.Keypair = *s.KeypairID
	}
	var least *policy.Limit
	for i := range b.limits {
		if l := &b.limits[i]; l.Binds(at) && (least == nil || *l.IdleTimeout < *least.IdleTimeout) {
			least = l
		}
	}
	if least != nil {
		rules = append(rules, ruleOfLimit(least))
	}
	return rules
}

// ruleOfLimit is the idle timeout of a policy: for interactive sessions, over the network.
func ruleOfLimit(l *policy.Limit) Rule {
	timeout := seconds(max(*l.IdleTimeout, minTimeout))
	return Rule{
		Name: fmt.Sprintf("policy %s of the %s %s", l.Policy, l.Scope, l.Holder), Kind: idlechecker.KindNetwork,
		Timeout: timeout, Warning: min(seconds(usualWarning), timeout/2), Types: idlechecker.DefaultSessionTypes,
	}
}

// candidate is a running session with all data that rules need.
type candidate struct {
	*ent.Session
	on Subject
}

// running reads the sessions that rules apply to, and those that they applied to before. from
// returns the measurements.
func (s *Service) running(ctx context.Context, b *rulebook, from func(context.Context, []uuid.UUID) *Measurements) ([]candidate, error) {
	live := s.Client.Session.Query().Where(entsession.TerminatedAtIsNil(), entsession.StatusEQ(lifecycle.Running), entsession.StartedAtNotNil(),
		entsession.TypeNEQ(entsession.TypeInference)) // package deployment decides how many replicas there are
	if b.empty() {
		live.Where(entsession.IdleNotNil())
	}
	list, err := live.Select(entsession.FieldName, entsession.FieldType, entsession.FieldStatus, entsession.FieldAttempt,
		entsession.FieldSlots, entsession.FieldIdle, entsession.FieldIdleExempt, entsession.FieldStartedAt, entsession.FieldDomainID,
		entsession.FieldProjectID, entsession.FieldOwnerID, entsession.FieldResourceGroupID, entsession.FieldKeypairID).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list running sessions: %w", err)
	}
	if b.empty() {
		return subjects(list, nil, nil), nil
	}
	used, err := s.used(ctx)
	if err != nil {
		return nil, err
	}
	joined := map[uuid.UUID]time.Time{}
	if b.any(func(r *Rule) bool { return r.NewUserGrace > 0 }) {
		if joined, err = s.joined(ctx, list); err != nil {
			return nil, err
		}
	}
	out := subjects(list, used, joined)
	if b.any((*Rule).measures) {
		kernels, ids, err := s.kernels(ctx)
		if err != nil {
			return nil, err
		}
		now, m := s.Now(), from(ctx, ids)
		for i := range out {
			mine := kernels[out[i].ID]
			out[i].on.Over = func(series string, span time.Duration) (Level, bool) { return m.over(mine, series, span, now) }
		}
	}
	return out, nil
}

func subjects(list []*ent.Session, used map[uuid.UUID]map[string]time.Time, joined map[uuid.UUID]time.Time) []candidate {
	out := make([]candidate, len(list))
	for i, sess := range list {
		kinds := []string{resource.CPU, resource.Mem}
		for slot := range sess.Slots {
			kinds = append(kinds, kindOf(slot))
		}
		out[i] = candidate{sess, Subject{
			Type: string(sess.Type), Started: *sess.StartedAt, Joined: joined[sess.OwnerID], Used: used[sess.ID], Kinds: kinds,
		}}
	}
	return out
}

// used reads when running sessions were last used over the network.
func (s *Service) used(ctx context.Context) (map[uuid.UUID]map[string]time.Time, error) {
	rows, err := s.Client.IdleActivity.Query().Where(idleactivity.HasSessionWith(entsession.TerminatedAtIsNil(), entsession.StatusEQ(lifecycle.Running))).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read when sessions were used: %w", err)
	}
	used := make(map[uuid.UUID]map[string]time.Time, len(rows))
	for _, r := range rows {
		if used[r.SessionID] == nil {
			used[r.SessionID] = map[string]time.Time{}
		}
		used[r.SessionID][r.App] = r.At
	}
	return used, nil
}

// joined reads when the owners of sessions were created.
func (s *Service) joined(ctx context.Context, list []*ent.Session) (map[uuid.UUID]time.Time, error) {
	owners := map[uuid.UUID]bool{}
	var ids []uuid.UUID
	for _, sess := range list {
		if !owners[sess.OwnerID] {
			owners[sess.OwnerID], ids = true, append(ids, sess.OwnerID)
		}
	}
	rows, err := s.Client.User.Query().Where(func(q *sql.Selector) { q.Where(store.In(q.C(user.FieldID), ids)) }).
		Select(user.FieldCreatedAt).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read owners: %w", err)
	}
	joined := make(map[uuid.UUID]time.Time, len(rows))
	for _, u := range rows {
		joined[u.ID] = u.CreatedAt
	}
	return joined, nil
}

// kernels returns the kernels of running sessions, by session and as one list.
func (s *Service) kernels(ctx context.Context) (map[uuid.UUID][]uuid.UUID, []uuid.UUID, error) {
	rows, err := s.Client.Kernel.Query().Where(kernel.StatusEQ(lifecycle.Running)).
		Select(kernel.FieldSessionID).All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list running kernels: %w", err)
	}
	by, ids := map[uuid.UUID][]uuid.UUID{}, make([]uuid.UUID, len(rows))
	for i, k := range rows {
		by[k.SessionID] = append(by[k.SessionID], k.ID)
		ids[i] = k.ID
	}
	return by, ids, nil
}
