package policy

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
)

// Service writes resource policies.
type Service struct{ client *ent.Client }

// New returns a Service on the database of client.
func New(client *ent.Client) *Service { return &Service{client: client} }

// CreateResourcePolicyInput is what a new policy is made of; nil means no limit.
type CreateResourcePolicyInput struct {
	Name               string
	TotalSlots         resource.Slots
	MaxSessions        *int
	MaxPendingSessions *int
	MaxVfolders        *int
	MaxScopeBytes      *int64
}

// UpdateResourcePolicyInput changes what is not nil; -1 takes a limit away.
type UpdateResourcePolicyInput struct {
	ID                 uuid.UUID
	TotalSlots         resource.Slots
	MaxSessions        *int
	MaxPendingSessions *int
	MaxVfolders        *int
	MaxScopeBytes      *int64
}

// ResourcePolicyPayload is a policy after a change.
type ResourcePolicyPayload struct{ Policy *ent.ResourcePolicy }

// CreateResourcePolicy makes a policy; superadmins only.
func (s *Service) CreateResourcePolicy(ctx context.Context, in CreateResourcePolicyInput) (*ResourcePolicyPayload, error) {
	if err := superadmin(ctx); err != nil {
		return nil, err
	}
	if err := naming.Name("name", in.Name); err != nil {
		return nil, err
	}
	limits := amounts{in.MaxSessions, in.MaxPendingSessions, in.MaxVfolders, in.MaxScopeBytes}
	if err := limits.check(in.TotalSlots, 0); err != nil {
		return nil, err
	}
	slots := in.TotalSlots
	if slots == nil {
		slots = resource.Slots{}
	}
	p, err := s.client.ResourcePolicy.Create().
		SetName(in.Name).SetTotalSlots(slots).
		SetNillableMaxSessions(in.MaxSessions).SetNillableMaxPendingSessions(in.MaxPendingSessions).
		SetNillableMaxVfolders(in.MaxVfolders).SetNillableMaxScopeBytes(in.MaxScopeBytes).
		Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create policy: %w", err)
	}
	return &ResourcePolicyPayload{Policy: p}, nil
}

// UpdateResourcePolicy changes limits; superadmins only. What runs keeps
// running, new limits bind what starts from now on.
func (s *Service) UpdateResourcePolicy(ctx context.Context, in UpdateResourcePolicyInput) (*ResourcePolicyPayload, error) {
	if err := superadmin(ctx); err != nil {
		return nil, err
	}
	limits := amounts{in.MaxSessions, in.MaxPendingSessions, in.MaxVfolders, in.MaxScopeBytes}
	if err := limits.check(in.TotalSlots, unlimited); err != nil {
		return nil, err
	}
	up := s.client.ResourcePolicy.UpdateOneID(in.ID)
	if in.TotalSlots != nil {
		up.SetTotalSlots(in.TotalSlots)
	}
	change(in.MaxSessions, up.SetMaxSessions, up.ClearMaxSessions)
	change(in.MaxPendingSessions, up.SetMaxPendingSessions, up.ClearMaxPendingSessions)
	change(in.MaxVfolders, up.SetMaxVfolders, up.ClearMaxVfolders)
	change(in.MaxScopeBytes, up.SetMaxScopeBytes, up.ClearMaxScopeBytes)
	p, err := up.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("change policy %s: %w", in.ID, err)
	}
	return &ResourcePolicyPayload{Policy: p}, nil
}

// unlimited in an update takes a limit away, because an absent value keeps it.
const unlimited = -1

func change[N int | int64](n *N, set func(N) *ent.ResourcePolicyUpdateOne, unset func() *ent.ResourcePolicyUpdateOne) {
	switch {
	case n == nil:
	case *n == unlimited:
		unset()
	default:
		set(*n)
	}
}

// amounts are the limits of an input that are plain numbers.
type amounts struct {
	sessions, pending, vfolders *int
	bytes                       *int64
}

func (a amounts) check(slots resource.Slots, least int64) error {
	for _, name := range slots.Names() {
		if !resource.ValidName(name) {
			return problem.Invalid("totalSlots", "%q is not a slot name", name)
		}
		if n := slots[name]; n < 0 || n > resource.MaxAmount {
			return problem.Invalid("totalSlots."+name, "must not be negative").WithLimit("0")
		}
	}
	for field, n := range map[string]*int{"maxSessions": a.sessions, "maxPendingSessions": a.pending, "maxVfolders": a.vfolders} {
		if n != nil && int64(*n) < least {
			return problem.Invalid(field, "must be at least %d", least).WithLimit(fmt.Sprint(least))
		}
	}
	if a.bytes != nil && *a.bytes < least {
		return problem.Invalid("maxScopeBytes", "must be at least %d", least).WithLimit(fmt.Sprint(least))
	}
	return nil
}

func superadmin(ctx context.Context) error {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() {
		return problem.Unauthenticated("log in first")
	}
	if !v.Superadmin() {
		return problem.Forbidden("only superadmins change resource policies")
	}
	return nil
}
