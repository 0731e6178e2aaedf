package identity

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
)

// CreateProjectInput is what a new project is made of.
type CreateProjectInput struct {
	Name        string
	Description *string
	Domain      uuid.UUID
	Policy      *uuid.UUID
}

// ProjectPayload is a project after a change.
type ProjectPayload struct{ Project *ent.Project }

// CreateProject makes a project; superadmins, and domain admins in their domain.
func (s *Service) CreateProject(ctx context.Context, in CreateProjectInput) (*ProjectPayload, error) {
	v, err := writer(ctx)
	if err != nil {
		return nil, err
	}
	if err := called(in.Name, in.Description); err != nil {
		return nil, err
	}
	var p *ent.Project
	err = s.inTx(ctx, func(tx *ent.Tx) error {
		if err := usableDomain(ctx, tx, in.Domain); err != nil {
			return err
		}
		if !v.AdminOf(in.Domain) {
			return problem.Forbidden("only admins of the domain create projects in it")
		}
		if err := bindable(ctx, tx, in.Policy); err != nil {
			return err
		}
		p, err = tx.Project.Create().SetName(in.Name).SetNillableDescription(in.Description).
			SetDomainID(in.Domain).Save(ctx)
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

// usableDomain checks that the viewer sees the domain and that it is active.
func usableDomain(ctx context.Context, tx *ent.Tx, id uuid.UUID) error {
	d, err := tx.Domain.Get(ctx, id)
	if err != nil {
		return missing(err, "domain", "domain")
	}
	if !d.Active {
		return problem.Precondition("domain %s is not active", d.Name).WithField("domain")
	}
	return nil
}
