package policy

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/keypair"
	"github.com/berthhq/berth/ent/policyattachment"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/resourcepolicy"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// AttachResourcePolicyInput attaches a policy to one domain, project, user or keypair,
// optionally only in a resource group, and for a user only within a project. A nil policy
// detaches.
type AttachResourcePolicyInput struct {
	Policy        *uuid.UUID
	Domain        *uuid.UUID
	Project       *uuid.UUID
	User          *uuid.UUID
	Keypair       *uuid.UUID
	ResourceGroup *uuid.UUID
	WithinProject *uuid.UUID
}

// AttachResourcePolicyPayload is the new attachment; nil after detaching.
type AttachResourcePolicyPayload struct {
	Policy     *ent.ResourcePolicy
	Attachment *ent.PolicyAttachment
}

// DetachResourcePolicyInput names an attachment.
type DetachResourcePolicyInput struct{ ID uuid.UUID }

// DetachResourcePolicyPayload is the id of the removed attachment.
type DetachResourcePolicyPayload struct{ ID uuid.UUID }

// holder is the object that a policy is attached to.
type holder struct {
	scope  Scope
	id     uuid.UUID
	domain uuid.UUID
	above  bool // only superadmins can change its policy
}

// AttachResourcePolicy attaches a policy to a domain, project, user or keypair, and replaces
// an attachment with the same restriction. Superadmins can attach to all; domain admins to
// objects in their domain, but not to the domain itself, whose policy limits them.
func (s *Service) AttachResourcePolicy(ctx context.Context, in AttachResourcePolicyInput) (*AttachResourcePolicyPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if n := count(in.Domain, in.Project, in.User, in.Keypair); n != 1 {
		return nil, problem.Invalid("input", "name exactly one of domain, project, user and keypair, not %d", n)
	}
	if in.WithinProject != nil && in.User == nil {
		return nil, problem.Invalid("withinProject", "only the policy of a user can be limited to a project")
	}
	h, err := s.holder(ctx, in.Domain, in.Project, in.User, in.Keypair)
	if err != nil {
		return nil, err
	}
	if err := mayBind(ctx, h); err != nil {
		return nil, err
	}
	if in.ResourceGroup != nil {
		if _, err := s.client.ResourceGroup.Get(ctx, *in.ResourceGroup); err != nil {
			return nil, permit.Missing(err, "resource group", "resourceGroup")
		}
	}
	if in.WithinProject != nil {
		if _, err := s.client.Project.Get(ctx, *in.WithinProject); err != nil {
			return nil, permit.Missing(err, "project", "withinProject")
		}
	}
	if in.Policy != nil {
		if _, err := s.client.ResourcePolicy.Get(ctx, *in.Policy); err != nil {
			return nil, permit.Missing(err, "policy", "policy")
		}
	}
	return s.bind(ctx, h, in)
}

// DetachResourcePolicy removes an attachment.
func (s *Service) DetachResourcePolicy(ctx context.Context, in DetachResourcePolicyInput) (*DetachResourcePolicyPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	a, err := s.client.PolicyAttachment.Get(ctx, in.ID)
	if err != nil && (!ent.IsNotFound(err) || !viewer.From(ctx).Allows(access.TokenAdmin)) {
		return nil, permit.Missing(err, "attachment", "id")
	}
	if a == nil {
		// The attachment of a keypair is not visible to the admin who created it.
		a, err = s.client.PolicyAttachment.Query().Where(policyattachment.ID(in.ID), policyattachment.KeypairIDNotNil()).Only(viewer.SystemContext(ctx))
		if err != nil {
			return nil, permit.Missing(err, "attachment", "id")
		}
	}
	h, err := s.holder(ctx, a.DomainID, a.ProjectID, a.UserID, a.KeypairID)
	if err != nil {
		return nil, err
	}
	if err := mayBind(ctx, h); err != nil {
		return nil, err
	}
	if err := s.client.PolicyAttachment.DeleteOneID(in.ID).Exec(ctx); err != nil {
		return nil, permit.Missing(err, "attachment", "id")
	}
	s.changed(ctx)
	return &DetachResourcePolicyPayload{ID: in.ID}, nil
}

// holder returns the object that a policy is attached to, if the viewer can see it.
func (s *Service) holder(ctx context.Context, domain, project, person, key *uuid.UUID) (holder, error) {
	switch {
	case domain != nil:
		_, err := s.client.Domain.Get(ctx, *domain)
		return holder{ScopeDomain, *domain, *domain, true}, permit.Missing(err, "domain", "domain")
	case project != nil:
		p, err := s.client.Project.Get(ctx, *project)
		if err != nil {
			return holder{}, permit.Missing(err, "project", "project")
		}
		return holder{ScopeProject, p.ID, p.DomainID, false}, nil
	case person != nil:
		return s.person(ctx, holder{scope: ScopeUser, id: *person}, *person, "user")
	}
	// Keypairs are visible only to their user; admins who can see the user can attach to them.
	k, err := s.client.Keypair.Query().Where(keypair.ID(*key)).Only(viewer.SystemContext(ctx))
	if err != nil {
		return holder{}, permit.Missing(err, "keypair", "keypair")
	}
	return s.person(ctx, holder{scope: ScopeKeypair, id: k.ID}, k.UserID, "keypair")
}

func (s *Service) person(ctx context.Context, h holder, id uuid.UUID, what string) (holder, error) {
	u, err := s.client.User.Get(ctx, id)
	if err != nil {
		return h, permit.Missing(err, what, what)
	}
	h.domain, h.above = u.DomainID, u.Role == user.RoleSuperadmin || u.Role == user.RoleMonitor
	return h, nil
}

// mayBind checks the permission to change the limits of an object. Being the owner does not
// suffice, so that no one can remove their own limits.
func mayBind(ctx context.Context, h holder) error {
	v := viewer.From(ctx)
	if !v.Allows(access.TokenAdmin) {
		return problem.Forbidden("the access token lacks the scope %s", access.TokenAdmin)
	}
	on := access.Object{ID: h.id, Domain: h.domain}
	if h.scope == ScopeProject {
		on.Project = h.id
	}
	granted := v.May(access.Update, access.ResourcePolicy, on)
	switch {
	case v.Superadmin(), !h.above && (granted || v.AdminOf(h.domain)):
		return nil
	case h.scope == ScopeDomain:
		return problem.Forbidden("only superadmins may change the limits of a domain")
	}
	return problem.Forbidden("only administrators of the domain may change the limits of a %s", h.scope)
}

// bind replaces the policy of one object with one restriction. A lock makes requests for the
// same object sequential.
func (s *Service) bind(ctx context.Context, h holder, in AttachResourcePolicyInput) (*AttachResourcePolicyPayload, error) {
	sys := viewer.SystemContext(ctx)
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	if err := store.Lock(ctx, tx, "attach "+h.id.String()); err != nil {
		return nil, err
	}
	held := map[Scope]predicate.PolicyAttachment{
		ScopeDomain: policyattachment.DomainID(h.id), ScopeProject: policyattachment.ProjectID(h.id),
		ScopeUser: policyattachment.UserID(h.id), ScopeKeypair: policyattachment.KeypairID(h.id),
	}[h.scope]
	group, within := policyattachment.ResourceGroupIDIsNil(), policyattachment.WithinProjectIDIsNil()
	if in.ResourceGroup != nil {
		group = policyattachment.ResourceGroupID(*in.ResourceGroup)
	}
	if in.WithinProject != nil {
		within = policyattachment.WithinProjectID(*in.WithinProject)
	}
	if _, err := tx.PolicyAttachment.Delete().Where(held, group, within).Exec(sys); err != nil {
		return nil, fmt.Errorf("detach policy from %s: %w", h.scope, err)
	}
	out := &AttachResourcePolicyPayload{}
	if in.Policy != nil {
		// A concurrent deletion of the policy waits for this row, and then counts it.
		if out.Policy, err = tx.ResourcePolicy.Query().Where(resourcepolicy.ID(*in.Policy)).ForShare().Only(sys); err != nil {
			return nil, permit.Missing(err, "policy", "policy")
		}
		out.Attachment, err = tx.PolicyAttachment.Create().SetPolicyID(*in.Policy).
			SetNillableDomainID(in.Domain).SetNillableProjectID(in.Project).SetNillableUserID(in.User).SetNillableKeypairID(in.Keypair).
			SetNillableResourceGroupID(in.ResourceGroup).SetNillableWithinProjectID(in.WithinProject).Save(sys)
		if err != nil {
			return nil, fmt.Errorf("attach policy to %s: %w", h.scope, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	s.changed(ctx)
	if out.Policy != nil {
		out.Policy, out.Attachment = out.Policy.Unwrap(), out.Attachment.Unwrap()
	}
	return out, nil
}

func count(ids ...*uuid.UUID) (n int) {
	for _, id := range ids {
		if id != nil {
			n++
		}
	}
	return n
}
