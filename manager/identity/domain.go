package identity

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// CreateDomainInput describes a new domain.
type CreateDomainInput struct {
	Name        string
	Description *string
	Policy      *uuid.UUID
}

// DomainPayload is a domain after a change.
type DomainPayload struct{ Domain *ent.Domain }

// maxDescription is in characters.
const maxDescription = 1000

// CreateDomain creates a domain.
func (s *Service) CreateDomain(ctx context.Context, in CreateDomainInput) (*DomainPayload, error) {
	if _, err := permit.Check(ctx, access.Create, access.Domain, access.Object{}); err != nil {
		return nil, err
	}
	if err := called(in.Name, in.Description); err != nil {
		return nil, err
	}
	var d *ent.Domain
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		if err := bindable(ctx, tx, in.Policy); err != nil {
			return err
		}
		d, err = tx.Domain.Create().SetName(in.Name).SetNillableDescription(in.Description).Save(ctx)
		if err != nil || in.Policy == nil {
			return err
		}
		return tx.PolicyAttachment.Create().SetPolicyID(*in.Policy).SetDomainID(d.ID).Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("create domain: %w", err)
	}
	return &DomainPayload{Domain: d.Unwrap()}, nil
}

// called checks a name and a description.
func called(name string, description *string) error {
	if err := naming.Name("name", name); err != nil {
		return err
	}
	if description == nil {
		return nil
	}
	return naming.Line("description", *description, maxDescription)
}
