package vfolder

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/storage/storagepb"
)

// place is where the folders of a scope are, for the limits that bind them.
func place(scope *ent.QuotaScope, domain, keypair uuid.UUID) policy.Place {
	if scope.Kind == quotascope.KindProject {
		return policy.Place{Domain: domain, Project: scope.HolderID}
	}
	return policy.Place{Domain: domain, User: scope.HolderID, Keypair: keypair}
}

// leastBytes is what a scope may hold: its own limit, or the least of the policies
// that bind it; nil for no limit.
func leastBytes(scope *ent.QuotaScope, limits []policy.Limit) *int64 {
	least := scope.LimitBytes
	at := place(scope, scope.DomainID, uuid.Nil)
	for i := range limits {
		l := &limits[i]
		if b := l.MaxScopeBytes; b != nil && bounds(l, scope) && l.Binds(at) && (least == nil || *b < *least) {
			least = b
		}
	}
	return least
}

// bounds reports whether the bytes of a policy are of account: a scope's own limit comes
// before the policies of its holder, not before that of the whole domain.
func bounds(l *policy.Limit, scope *ent.QuotaScope) bool {
	return scope.LimitBytes == nil || l.Scope == policy.ScopeDomain
}

// EffectiveLimits are the limits that bind scopes now, of those that have one.
func (s *Service) EffectiveLimits(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*int64, error) {
	limits, err := s.policies.All(ctx, s.client)
	if err != nil {
		return nil, err
	}
	scopes, err := s.client.QuotaScope.Query().Where(quotascope.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read quota scopes: %w", err)
	}
	m := map[uuid.UUID]*int64{}
	for _, scope := range scopes {
		m[scope.ID] = leastBytes(scope, limits)
	}
	return m, nil
}

// settle gives every scope that a proxy serves now the limits that bind it now, and
// notes what the proxy knows of its usage. A scope that could not be settled is
// looked at again with the next pass.
func (s *Service) settle(ctx context.Context) error {
	limits, err := s.policies.All(ctx, s.client)
	if err != nil {
		return err
	}
	scopes, err := s.client.QuotaScope.Query().WithVolume().All(ctx)
	if err != nil {
		return fmt.Errorf("list quota scopes: %w", err)
	}
	for _, scope := range scopes {
		p, err := s.reach(scope.Edges.Volume.Name)
		if err != nil {
			continue
		}
		got, err := s.settled(ctx, p.rpc, request(scope, scope.Edges.Volume, leastBytes(scope, limits)))
		if err != nil {
			s.log.Debug("settle quota scope", "scope", scope.ID, "error", err)
			continue
		}
		u := s.client.QuotaScope.UpdateOne(scope).SetEnforcement(got.Enforcement).
			SetNillableUsedBytes(got.UsedBytes).SetNillableUsedInodes(got.UsedInodes)
		if got.UsedBytes != nil || got.UsedInodes != nil {
			u.SetMeasuredAt(clock.Now())
		}
		if err := u.Exec(ctx); err != nil {
			return fmt.Errorf("note quota scope %s: %w", scope.ID, err)
		}
	}
	return nil
}

// settled is a scope as its proxy has it after it was given the limits. Some products
// round them: what came of the same limits before is not asked for again.
func (s *Service) settled(ctx context.Context, rpc storagepb.StorageClient, want *storagepb.ScopeRequest) (*storagepb.Scope, error) {
	got, err := rpc.GetScope(ctx, want)
	if err != nil {
		return nil, errgrpc.ToNative(err)
	}
	if same(got.LimitBytes, want.LimitBytes) && same(got.LimitInodes, want.LimitInodes) {
		return got, nil
	}
	of := want.Volume + " " + want.Scope
	s.mu.Lock()
	before := s.rounded[of]
	s.mu.Unlock()
	if before.of(want, got) {
		return got, nil
	}
	if got, err = rpc.SetScopeLimit(ctx, want); err != nil {
		return nil, fmt.Errorf("limit quota scope: %w", errgrpc.ToNative(err))
	}
	s.mu.Lock()
	s.rounded[of] = rounded{want, got}
	s.mu.Unlock()
	return got, nil
}

// rounded is what a product made of the limits of a scope.
type rounded struct {
	want *storagepb.ScopeRequest
	got  *storagepb.Scope
}

// of reports whether it is what was made of these limits, and still holds.
func (r rounded) of(want *storagepb.ScopeRequest, got *storagepb.Scope) bool {
	return r.want != nil && same(r.want.LimitBytes, want.LimitBytes) && same(r.want.LimitInodes, want.LimitInodes) &&
		same(r.got.LimitBytes, got.LimitBytes) && same(r.got.LimitInodes, got.LimitInodes)
}

func same(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
