package policy

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// EffectiveLimit is the strictest limit of one quantity. Amounts are decimals.
type EffectiveLimit struct {
	What       string // a slot, or sessions, pending sessions, folders …
	Limit      string
	Used       string
	Assignable string // never negative
	Scope      string
	Holder     string
	Policy     string
	// ResourceGroup and WithinProject are the restrictions of the limit.
	ResourceGroup, WithinProject *string

	left int64
}

// EffectiveLimits returns the remaining amounts for a user in a project of a domain on a
// resource group; the default is the viewer in their project. It returns only limits of scopes
// that the viewer can see.
func (s *Service) EffectiveLimits(ctx context.Context, domain, project, user, group *uuid.UUID) ([]*EffectiveLimit, error) {
	at, err := s.place(ctx, domain, project, user, group)
	if err != nil {
		return nil, err
	}
	limits, err := s.Binding(ctx, at)
	if err != nil {
		return nil, err
	}
	usage, err := s.Usage(ctx, s.client, limits)
	if err != nil {
		return nil, err
	}
	best := map[string]*EffectiveLimit{}
	var order []string
	for i := range limits {
		used, err := usage.Of(&limits[i])
		if err != nil {
			return nil, err
		}
		list, err := s.effects(ctx, &limits[i], used)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if old := best[e.What]; old == nil {
				order = append(order, e.What)
				best[e.What] = e
			} else if e.left < old.left {
				best[e.What] = e
			}
		}
	}
	slices.Sort(order)
	out := make([]*EffectiveLimit, 0, len(order))
	for _, what := range order {
		out = append(out, best[what])
	}
	return out, nil
}

// place reads the given objects, so that invisible ones are not found.
func (s *Service) place(ctx context.Context, domain, project, user, group *uuid.UUID) (at Place, err error) {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() {
		return at, problem.Unauthenticated("log in first")
	}
	if domain == nil && project == nil && user == nil {
		at = Place{User: v.User, Domain: v.Domain}
		if id.KindOf(v.Credential) == id.Keypair {
			at.Keypair = v.Credential
		}
		if len(v.Projects) == 1 {
			project = &v.Projects[0]
		}
	}
	if group != nil {
		if _, err := s.client.ResourceGroup.Get(ctx, *group); err != nil {
			return at, permit.Missing(err, "resource group", "resourceGroup")
		}
		at.Group = *group
	}
	if user != nil {
		u, err := s.client.User.Get(ctx, *user)
		if err != nil {
			return at, permit.Missing(err, "user", "user")
		}
		if !v.May(access.Read, access.User, access.Object{ID: u.ID, Domain: u.DomainID, Owner: u.ID}) {
			return at, problem.NotFound("user").WithField("user")
		}
		at.User, at.Domain = u.ID, u.DomainID
	}
	if project != nil {
		p, err := s.client.Project.Get(ctx, *project)
		if err != nil {
			return at, permit.Missing(err, "project", "project")
		}
		at.Project, at.Domain = p.ID, p.DomainID // sessions count in the domain of their project
	}
	if domain != nil {
		if _, err := s.client.Domain.Get(ctx, *domain); err != nil {
			return at, permit.Missing(err, "domain", "domain")
		}
		if at.Domain != uuid.Nil && at.Domain != *domain {
			return at, problem.Invalid("domain", "the project or user is in another domain")
		}
		at.Domain = *domain
	}
	return at, nil
}

// effects returns all limits of one policy.
func (s *Service) effects(ctx context.Context, l *Limit, used Used) ([]*EffectiveLimit, error) {
	var out []*EffectiveLimit
	add := func(what string, most, used int64, text func(int64) string) {
		e := &EffectiveLimit{What: what, Scope: string(l.Scope), Holder: l.Holder, Policy: l.Policy, left: max(most-used, 0)}
		e.Limit, e.Used, e.Assignable = text(most), text(used), text(e.left)
		if l.Group != uuid.Nil {
			e.ResourceGroup = &l.GroupName
		}
		if l.Within != uuid.Nil {
			e.WithinProject = &l.WithinName
		}
		out = append(out, e)
	}
	slot := func(name string) func(int64) string {
		return func(n int64) string { return resource.Format(name, n) }
	}
	slots := l.TotalSlots.Clone()
	if slots == nil {
		slots = resource.Slots{}
	}
	if l.UnlistedZero {
		known, err := s.client.SlotType.Query().All(viewer.SystemContext(ctx))
		if err != nil {
			return nil, fmt.Errorf("read slot types: %w", err)
		}
		for _, t := range known {
			slots[t.Name] += 0
		}
		for name := range used.Slots {
			slots[name] += 0
		}
	}
	for _, name := range slots.Names() {
		add(name, slots[name], used.Slots[name], slot(name))
	}
	for _, name := range l.PendingSlots.Names() {
		add("pending "+name, l.PendingSlots[name], used.PendingSlots[name], slot(name))
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, one := range l.Amounts.list() {
		if *one.n == nil || l.Narrowed() && !one.session {
			continue
		}
		n, err := s.counted(ctx, l, one.what, used)
		if err != nil {
			return nil, err
		}
		add(one.what, int64(**one.n), int64(n), number)
	}
	if l.MaxDiskBytes != nil { // it limits each container separately
		add(DiskBytes, *l.MaxDiskBytes, 0, number)
	}
	if l.MaxScopeBytes != nil && !l.Narrowed() {
		n, err := fullest(ctx, s.client, l)
		if err != nil {
			return nil, fmt.Errorf("read quota scopes: %w", err)
		}
		add("scope bytes", *l.MaxScopeBytes, n, number)
	}
	return out, nil
}

// counted returns the used part of a numeric limit. A limit per session is never used up.
func (s *Service) counted(ctx context.Context, l *Limit, what string, used Used) (int, error) {
	switch what {
	case "sessions":
		return used.Sessions, nil
	case "pending sessions":
		return used.Pending, nil
	case "folders":
		return Folders(ctx, s.client, l)
	case "deployments":
		return Deployments(ctx, s.client, l)
	case "logins":
		return logins(ctx, s.client, l)
	}
	return 0, nil
}
