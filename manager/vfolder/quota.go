package vfolder

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/store"
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
		got, err := s.applyLimits(ctx, p.rpc, request(scope, scope.Edges.Volume, leastBytes(scope, limits)))
		if err != nil {
			s.Logger.Debug("apply quota scope", "scope", scope.ID, "error", err)
			continue
		}
		u := s.Client.QuotaScope.UpdateOne(scope).SetEnforcement(got.Enforcement).
			SetNillableUsedBytes(got.UsedBytes).SetNillableUsedInodes(got.UsedInodes)
		if got.UsedBytes != nil || got.UsedInodes != nil {
			u.SetMeasuredAt(clock.Now())
		}
		if err := u.Exec(ctx); err != nil {
			return fmt.Errorf("store quota scope %s: %w", scope.ID, err)
		}
	}
	return nil
}

// applyLimits applies limits to a scope and returns the scope as its proxy reports it. Some
// products round limits, so limits that were applied before are not applied again.
func (s *Service) applyLimits(ctx context.Context, rpc storagepb.StorageClient, want *storagepb.ScopeRequest) (*storagepb.Scope, error) {
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

// checkQuota returns an error that lists every policy limit that a new folder would exceed: of
// folders, or of bytes. brings is the number of bytes that come with the folder, or nil if
// they are on the volume already. A lock makes requests of one holder sequential.
func (s *Service) checkQuota(ctx context.Context, tx *ent.Tx, v *viewer.Viewer, domain uuid.UUID, scope *ent.QuotaScope, brings *int64) error {
	keypair := uuid.Nil
	if id.KindOf(v.Credential) == id.Keypair {
		keypair = v.Credential
	}
	limits, err := s.Policies.Binding(ctx, place(scope, domain, keypair))
	if err != nil {
		return err
	}
	var locks []string
	for _, l := range limits {
		if l.MaxVfolders == nil {
			continue
		}
		holder := l.ScopeID
		if l.Scope == policy.ScopeKeypair {
			holder = l.Person
		}
		locks = append(locks, "folders "+holder.String())
	}
	if err := store.Lock(ctx, tx, locks...); err != nil {
		return err
	}
	var reached []string
	most := ""
	for i := range limits {
		l := &limits[i]
		if l.MaxVfolders != nil {
			n, err := policy.Folders(ctx, tx.Client(), l)
			if err != nil {
				return err
			}
			if n >= *l.MaxVfolders {
				most = fmt.Sprint(*l.MaxVfolders)
				reached = append(reached, l.Reached("folders", fmt.Sprint(n), "1", most).String())
			}
		}
		if b := l.MaxScopeBytes; b != nil && bounds(l, scope) && brings != nil && scope.UsedBytes != nil && *scope.UsedBytes+max(*brings, 1) > *b {
			most = strconv.FormatInt(*b, 10)
			asked := "more"
			if *brings > 0 {
				asked = strconv.FormatInt(*brings, 10)
			}
			reached = append(reached, l.Reached("scope bytes", strconv.FormatInt(*scope.UsedBytes, 10), asked, most).String())
		}
	}
	if brings != nil {
		for _, own := range ownReached(scope, *brings) {
			reached, most = append(reached, own.refusal), own.most
		}
	}
	if len(reached) > 0 {
		return problem.Exhausted("%s", strings.Join(reached, "; ")).WithField("folders").WithLimit(most)
	}
	return nil
}

// bytesLimit returns the current limit of a scope in bytes; nil for no limit.
func (s *Service) bytesLimit(ctx context.Context, scope *ent.QuotaScope) (*int64, error) {
	limits, err := s.Policies.Binding(ctx, place(scope, scope.DomainID, uuid.Nil))
	if err != nil {
		return nil, err
	}
	return leastBytes(scope, limits), nil
}

// Limits that a volume can enforce, as the storage contract names them.
const (
	bytesQuota  = "quota-bytes"
	inodesQuota = "quota-inodes"
)

// request describes a scope with those of its limits that its volume can enforce. The limit of
// bytes comes from the policies too; the limit of files is the scope's own.
func request(scope *ent.QuotaScope, vol *ent.Volume, bytes *int64) *storagepb.ScopeRequest {
	q := &storagepb.ScopeRequest{Volume: vol.Name, Scope: scope.HolderID.String()}
	unknown := len(vol.Capabilities) == 0 // then the proxy checks
	if unknown || slices.Contains(vol.Capabilities, bytesQuota) {
		q.LimitBytes = bytes
	}
	if unknown || slices.Contains(vol.Capabilities, inodesQuota) {
		q.LimitInodes = scope.LimitInodes
	}
	return q
}

// limitKind is a quantity that a scope can limit.
type limitKind struct {
	field, capability, refusal string
	wanted                     func(SetQuotaScopeInput) *int64
	now                        func(*ent.QuotaScope) (used, most *int64)
}

var limitKinds = []limitKind{
	{
		"limitBytes", bytesQuota, "bytes", func(in SetQuotaScopeInput) *int64 { return in.LimitBytes },
		func(s *ent.QuotaScope) (used, most *int64) { return s.UsedBytes, s.LimitBytes },
	},
	{
		"limitInodes", inodesQuota, "files", func(in SetQuotaScopeInput) *int64 { return in.LimitInodes },
		func(s *ent.QuotaScope) (used, most *int64) { return s.UsedInodes, s.LimitInodes },
	},
}

// check returns an error if the volume cannot enforce the limit.
func (l limitKind) check(vol *ent.Volume, limit *int64) error {
	if limit == nil {
		return nil
	}
	if *limit < 0 {
		return problem.Invalid(l.field, "%d %s", *limit, l.refusal).WithLimit("0..")
	}
	if len(vol.Capabilities) == 0 {
		return problem.Unavailable("the plugin of volume %s has not reported yet which limits the volume supports", vol.Name).WithField(l.field)
	}
	if slices.Contains(vol.Capabilities, l.capability) {
		return nil
	}
	can := "nothing"
	for _, other := range limitKinds {
		if slices.Contains(vol.Capabilities, other.capability) {
			can = other.refusal
		}
	}
	return problem.Precondition("volume %s (%s) cannot limit %s; it can limit %s", vol.Name, vol.Backend, l.refusal, can).WithField(l.field)
}

// refused names the field of a limit that a product does not accept, such as zero where zero
// means unlimited.
func refused(err error) error {
	if !errdefs.IsInvalidArgument(err) {
		return err
	}
	refusal, _ := problem.From(err)
	for _, l := range limitKinds {
		if strings.Contains(refusal.Message, l.plugins()) {
			return problem.Invalid(l.field, "%s", refusal.Message).Because(err)
		}
	}
	return err
}

// plugins returns the name of the field in the contract of volume plugins.
func (l limitKind) plugins() string {
	return "limit." + strings.ToLower(strings.TrimPrefix(l.field, "limit"))
}

// full describes a scope's own limit that is reached.
type full struct{ refusal, most string }

// ownReached returns the scope's own limits that do not allow a folder with this many bytes.
func ownReached(scope *ent.QuotaScope, brings int64) (list []full) {
	for _, l := range limitKinds {
		used, most := l.now(scope)
		more := int64(1)
		if l.capability == bytesQuota {
			more = max(brings, 1)
		}
		if most != nil && used != nil && *used+more > *most {
			list = append(list, full{fmt.Sprintf("the quota scope holds %d %s of %d", *used, l.refusal, *most), strconv.FormatInt(*most, 10)})
		}
	}
	return list
}
