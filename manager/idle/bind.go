package idle

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/idlebinding"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// AttachIdleCheckerInput binds a checker to the sessions of one domain, project or resource
// group, or to all sessions if none is given.
type AttachIdleCheckerInput struct {
	Checker                        uuid.UUID
	Domain, Project, ResourceGroup *uuid.UUID
}

// DetachIdleCheckerInput removes a binding.
type DetachIdleCheckerInput AttachIdleCheckerInput

// AttachIdleChecker binds a checker. Binding it again changes nothing.
func (s *Service) AttachIdleChecker(ctx context.Context, in AttachIdleCheckerInput) (*IdleCheckerPayload, error) {
	c, err := s.writable(ctx, in.Checker, "checker")
	if err != nil {
		return nil, err
	}
	p := in.place()
	if err := s.exists(ctx, p); err != nil {
		return nil, err
	}
	all := viewer.SystemContext(ctx)
	have, err := s.Client.IdleBinding.Query().Where(idlebinding.CheckerID(c.ID), p.is()).Exist(all)
	if err != nil {
		return nil, fmt.Errorf("read bindings: %w", err)
	}
	if !have {
		err = s.Client.IdleBinding.Create().SetCheckerID(c.ID).SetNillableDomainID(p.domain).SetNillableProjectID(p.project).
			SetNillableResourceGroupID(p.group).Exec(ctx)
		if err != nil && !ent.IsConstraintError(err) { // a concurrent equal request created it
			return nil, fmt.Errorf("bind idle checker %s: %w", c.Name, err)
		}
		s.changed(ctx)
	}
	return &IdleCheckerPayload{Checker: c}, nil
}

// DetachIdleChecker removes a binding. Sessions that it would have ended continue.
func (s *Service) DetachIdleChecker(ctx context.Context, in DetachIdleCheckerInput) (*IdleCheckerPayload, error) {
	c, err := s.writable(ctx, in.Checker, "checker")
	if err != nil {
		return nil, err
	}
	p := AttachIdleCheckerInput(in).place()
	if err := p.one(); err != nil {
		return nil, err
	}
	n, err := s.Client.IdleBinding.Delete().Where(idlebinding.CheckerID(c.ID), p.is()).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("unbind idle checker %s: %w", c.Name, err)
	}
	if n == 0 {
		return nil, problem.NotFound("binding")
	}
	s.changed(ctx)
	return &IdleCheckerPayload{Checker: c}, nil
}

// place is the object of a binding: one of the three, or all sessions.
type place struct{ domain, project, group *uuid.UUID }

func (in AttachIdleCheckerInput) place() place { return place{in.Domain, in.Project, in.ResourceGroup} }

func placeOf(b *ent.IdleBinding) place { return place{b.DomainID, b.ProjectID, b.ResourceGroupID} }

// one returns an error if more than one of the three is set.
func (p place) one() error {
	n := 0
	for _, id := range []*uuid.UUID{p.domain, p.project, p.group} {
		if id != nil {
			n++
		}
	}
	if n > 1 {
		return problem.Invalid("input", "name at most one of domain, project and resourceGroup")
	}
	return nil
}

// has reports whether a session belongs to the place.
func (p place) has(s *ent.Session) bool {
	switch {
	case p.domain != nil:
		return *p.domain == s.DomainID
	case p.project != nil:
		return *p.project == s.ProjectID
	case p.group != nil:
		return *p.group == s.ResourceGroupID
	}
	return true
}

// is returns the condition on the bindings of the place.
func (p place) is() predicate.IdleBinding {
	switch {
	case p.domain != nil:
		return idlebinding.DomainID(*p.domain)
	case p.project != nil:
		return idlebinding.ProjectID(*p.project)
	case p.group != nil:
		return idlebinding.ResourceGroupID(*p.group)
	}
	return idlebinding.And(idlebinding.DomainIDIsNil(), idlebinding.ProjectIDIsNil(), idlebinding.ResourceGroupIDIsNil())
}

// exists checks that the viewer can see the object.
func (s *Service) exists(ctx context.Context, p place) (err error) {
	if err := p.one(); err != nil {
		return err
	}
	what, field := "", ""
	switch {
	case p.domain != nil:
		what, field = "domain", "domain"
		_, err = s.Client.Domain.Get(ctx, *p.domain)
	case p.project != nil:
		what, field = "project", "project"
		_, err = s.Client.Project.Get(ctx, *p.project)
	case p.group != nil:
		what, field = "resource group", "resourceGroup"
		_, err = s.Client.ResourceGroup.Get(ctx, *p.group)
	}
	return permit.Missing(err, what, field)
}
