package policy

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/policyattachment"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// AttachResourcePolicyInput attaches a policy to exactly one of domain, project
// and user; without a policy it detaches.
type AttachResourcePolicyInput struct {
	Policy  *uuid.UUID
	Domain  *uuid.UUID
	Project *uuid.UUID
	User    *uuid.UUID
}

// AttachResourcePolicyPayload is the policy that is attached now, nil for none.
type AttachResourcePolicyPayload struct{ Policy *ent.ResourcePolicy }

// AttachResourcePolicy binds one domain, project or user. Superadmins bind all;
// domain admins the projects and users of their domain, but not the domain
// itself, which bounds them.
func (s *Service) AttachResourcePolicy(ctx context.Context, in AttachResourcePolicyInput) (*AttachResourcePolicyPayload, error) {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() {
		return nil, problem.Unauthenticated("log in first")
	}
	if n := count(in.Domain, in.Project, in.User); n != 1 {
		return nil, problem.Invalid("input", "name exactly one of domain, project and user, not %d", n)
	}
	out := &AttachResourcePolicyPayload{}
	if in.Policy != nil {
		p, err := s.client.ResourcePolicy.Get(ctx, *in.Policy)
		if ent.IsNotFound(err) {
			return nil, problem.NotFound("policy").WithField("policy")
		}
		if err != nil {
			return nil, fmt.Errorf("read policy: %w", err)
		}
		out.Policy = p
	}
	var err error
	switch {
	case in.Domain != nil:
		err = s.bindDomain(ctx, v, *in.Domain, in.Policy)
	case in.Project != nil:
		err = s.bindProject(ctx, v, *in.Project, in.Policy)
	default:
		err = s.bindUser(ctx, v, *in.User, in.Policy)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Service) bindDomain(ctx context.Context, v *viewer.Viewer, id uuid.UUID, policy *uuid.UUID) error {
	if _, err := s.client.Domain.Get(ctx, id); err != nil {
		return fmt.Errorf("read domain: %w", err)
	}
	if !v.Superadmin() {
		return problem.Forbidden("only superadmins change the limits of a domain")
	}
	return wrap("domain", s.bind(ctx, policyattachment.DomainID(id), policy, func(c *ent.PolicyAttachmentCreate) { c.SetDomainID(id) }))
}

func (s *Service) bindProject(ctx context.Context, v *viewer.Viewer, id uuid.UUID, policy *uuid.UUID) error {
	p, err := s.client.Project.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("read project: %w", err)
	}
	if !v.AdminOf(p.DomainID) {
		return problem.Forbidden("only admins of the domain change the limits of a project")
	}
	return wrap("project", s.bind(ctx, policyattachment.ProjectID(id), policy, func(c *ent.PolicyAttachmentCreate) { c.SetProjectID(id) }))
}

func (s *Service) bindUser(ctx context.Context, v *viewer.Viewer, id uuid.UUID, policy *uuid.UUID) error {
	u, err := s.client.User.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("read user: %w", err)
	}
	above := u.Role == user.RoleSuperadmin || u.Role == user.RoleMonitor
	if !v.AdminOf(u.DomainID) || above && !v.Superadmin() {
		return problem.Forbidden("only admins of the domain change the limits of a user")
	}
	return wrap("user", s.bind(ctx, policyattachment.UserID(id), policy, func(c *ent.PolicyAttachmentCreate) { c.SetUserID(id) }))
}

// bind replaces the policy of one holder.
func (s *Service) bind(ctx context.Context, holder predicate.PolicyAttachment, policy *uuid.UUID, of func(*ent.PolicyAttachmentCreate)) error {
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	if _, err := tx.PolicyAttachment.Delete().Where(holder).Exec(ctx); err != nil {
		return err
	}
	if policy != nil {
		c := tx.PolicyAttachment.Create().SetPolicyID(*policy)
		of(c)
		if err := c.Exec(ctx); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("attach policy to %s: %w", what, err)
	}
	return nil
}

func count(ids ...*uuid.UUID) (n int) {
	for _, id := range ids {
		if id != nil {
			n++
		}
	}
	return n
}
