package group

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/groupgrant"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// GrantResourceGroupInput grants a group to one domain, project, user or keypair.
type GrantResourceGroupInput struct {
	ResourceGroup                  uuid.UUID
	Domain, Project, User, Keypair *uuid.UUID
}

// RevokeResourceGroupInput revokes the grant of one domain, project, user or keypair.
type RevokeResourceGroupInput struct {
	ResourceGroup                  uuid.UUID
	Domain, Project, User, Keypair *uuid.UUID
}

// GrantResourceGroup grants a group. Granting it again changes nothing.
func (s *Service) GrantResourceGroup(ctx context.Context, in GrantResourceGroupInput) (*ResourceGroupPayload, error) {
	g, err := s.permitted(ctx, access.Grant, in.ResourceGroup, "resourceGroup")
	if err != nil {
		return nil, err
	}
	to, err := in.to()
	if err != nil {
		return nil, err
	}
	if err := s.exists(ctx, in); err != nil {
		return nil, err
	}
	have, err := s.client.GroupGrant.Query().Where(groupgrant.ResourceGroupID(g.ID), to).Exist(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read grants: %w", err)
	}
	if have {
		return &ResourceGroupPayload{ResourceGroup: g}, nil
	}
	err = s.client.GroupGrant.Create().SetResourceGroupID(g.ID).SetNillableDomainID(in.Domain).SetNillableProjectID(in.Project).
		SetNillableUserID(in.User).SetNillableKeypairID(in.Keypair).Exec(ctx)
	if err != nil && !ent.IsConstraintError(err) { // a concurrent equal request created it
		return nil, fmt.Errorf("grant resource group: %w", err)
	}
	s.bus.Publish(ctx, event.Event{Topic: event.Pending})
	return &ResourceGroupPayload{ResourceGroup: g}, nil
}

// RevokeResourceGroup revokes a grant. Running sessions continue.
func (s *Service) RevokeResourceGroup(ctx context.Context, in RevokeResourceGroupInput) (*ResourceGroupPayload, error) {
	g, err := s.permitted(ctx, access.Grant, in.ResourceGroup, "resourceGroup")
	if err != nil {
		return nil, err
	}
	from, err := GrantResourceGroupInput(in).to()
	if err != nil {
		return nil, err
	}
	n, err := s.client.GroupGrant.Delete().Where(groupgrant.ResourceGroupID(g.ID), from).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("revoke resource group: %w", err)
	}
	if n == 0 {
		return nil, problem.NotFound("grant")
	}
	return &ResourceGroupPayload{ResourceGroup: g}, nil
}

// to returns the condition on the grantee.
func (in GrantResourceGroupInput) to() (predicate.GroupGrant, error) {
	var list []predicate.GroupGrant
	for _, one := range []struct {
		id *uuid.UUID
		is func(uuid.UUID) predicate.GroupGrant
	}{
		{in.Domain, groupgrant.DomainID}, {in.Project, groupgrant.ProjectID}, {in.User, groupgrant.UserID}, {in.Keypair, groupgrant.KeypairID},
	} {
		if one.id != nil {
			list = append(list, one.is(*one.id))
		}
	}
	if len(list) != 1 {
		return nil, problem.Invalid("input", "name exactly one of domain, project, user and keypair")
	}
	return list[0], nil
}

// exists checks that the viewer can see the grantee.
func (s *Service) exists(ctx context.Context, in GrantResourceGroupInput) (err error) {
	what := ""
	switch {
	case in.Domain != nil:
		what = "domain"
		_, err = s.client.Domain.Get(ctx, *in.Domain)
	case in.Project != nil:
		what = "project"
		_, err = s.client.Project.Get(ctx, *in.Project)
	case in.User != nil:
		what = "user"
		_, err = s.client.User.Get(ctx, *in.User)
	case in.Keypair != nil:
		what = "keypair"
		_, err = s.client.Keypair.Get(ctx, *in.Keypair)
	}
	if err != nil {
		return permit.Missing(err, what, what)
	}
	return nil
}
