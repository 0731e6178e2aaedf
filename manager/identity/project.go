package identity

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// CreateProjectInput describes a new project.
type CreateProjectInput struct {
	Name        string
	Description *string
	Domain      uuid.UUID
	Type        *project.Type
	Policy      *uuid.UUID
}

// ProjectPayload is a project after a change.
type ProjectPayload struct{ Project *ent.Project }

// CreateProject creates a project in an active domain.
func (s *Service) CreateProject(ctx context.Context, in CreateProjectInput) (*ProjectPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if err := called(in.Name, in.Description); err != nil {
		return nil, err
	}
	if in.Type != nil && project.TypeValidator(*in.Type) != nil {
		return nil, problem.Invalid("type", "is not a type of project")
	}
	var p *ent.Project
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		if _, err := usableDomain(ctx, tx.Domain, in.Domain); err != nil {
			return err
		}
		if _, err := permit.Check(ctx, access.Create, access.Project, access.Object{Domain: in.Domain}); err != nil {
			return err
		}
		if err := bindable(ctx, tx, in.Policy); err != nil {
			return err
		}
		p, err = tx.Project.Create().SetName(in.Name).SetNillableDescription(in.Description).
			SetNillableType(in.Type).SetDomainID(in.Domain).Save(ctx)
		if err != nil || in.Policy == nil {
			return err
		}
		return tx.PolicyAttachment.Create().SetPolicyID(*in.Policy).SetProjectID(p.ID).Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("create project: %w", err)
	}
	return &ProjectPayload{Project: p.Unwrap()}, nil
}

// usableDomain returns an active domain that the viewer can see.
func usableDomain(ctx context.Context, domains *ent.DomainClient, id uuid.UUID) (*ent.Domain, error) {
	d, err := domains.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "domain", "domain")
	}
	if !d.Active {
		return nil, problem.Precondition("domain %s is not active", d.Name).WithField("domain")
	}
	return d, nil
}
