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

// place returns the owner of a scope's folders, for the limits that apply to them.
func place(scope *ent.QuotaScope, domain, keypair uuid.UUID) policy.Place {
	if scope.Kind == quotascope.KindProject {
		return policy.Place{Domain: domain, Project: scope.HolderID}
	}
	return policy.Place{Domain: domain, User: scope.HolderID, Keypair: keypair}
}

// leastBytes returns the limit of a scope: its own, or the smallest of the policies that apply
// to it; nil for no limit.
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

// bounds reports whether a policy limits the bytes of a scope: a scope's own limit replaces
// the policies of its owner, but not the policy of the domain.
func bounds(l *policy.Limit, scope *ent.QuotaScope) bool {
	return scope.LimitBytes == nil || l.Scope == policy.ScopeDomain
}

// EffectiveLimits returns the current limits of scopes; scopes without a limit are left out.
func (s *Service) EffectiveLimits(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*int64, error) {
	limits, err := s.Policies.All(ctx, s.Client)
	if err != nil {
		return nil, err
	}
	scopes, err := s.Client.QuotaScope.Query().Where(quotascope.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read quota scopes: %w", err)
	}
	m := map[uuid.UUID]*int64{}
	for _, scope := range scopes {
		m[scope.ID] = leastBytes(scope, limits)
	}
	return m, nil
}

// syncScopes applies the current limits to every scope that a connected proxy serves, and
// stores the usage that the proxy returns. A scope that fails is retried in the next pass.
func (s *Service) syncScopes(ctx context.Context) error {
	limits, err := s.Policies.All(ctx, s.Client)
	if err != nil {
		return err
	}
	scopes, err := s.Client.QuotaScope.Query().WithVolume().All(ctx)
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
			s.Logger.Debug("settle quota scope", "scope", scope.ID, "error", err)
			continue
		}
		u := s.Client.QuotaScope.UpdateOne(scope).SetEnforcement(got.Enforcement).
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

// settled applies limits to a scope and returns the scope as its proxy reports it. Some
// products round limits, so limits that were applied before are not applied again.
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

// rounded remembers the limits of a scope as a product has rounded them.
type rounded struct {
	want *storagepb.ScopeRequest
	got  *storagepb.Scope
}

// of reports whether these limits were applied before and the scope still has the rounded
// values.
func (r rounded) of(want *storagepb.ScopeRequest, got *storagepb.Scope) bool {
	return r.want != nil && same(r.want.LimitBytes, want.LimitBytes) && same(r.want.LimitInodes, want.LimitInodes) &&
		same(r.got.LimitBytes, got.LimitBytes) && same(r.got.LimitInodes, got.LimitInodes)
}

func same(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
