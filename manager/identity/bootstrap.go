package identity

import (
	"context"
	"fmt"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/store"
)

const (
	firstName         = "default"
	firstUser         = "admin"
	generatedPassword = 20 // characters, with more than 110 bits of entropy
)

// Bootstrap creates the first superadmin if there is none, in a default domain and project
// with a public default resource group, and returns the generated password. If several
// managers start together, one of them does it.
func (s *Service) Bootstrap(ctx context.Context, email string) (generated string, created bool, err error) {
	ctx = viewer.SystemContext(ctx)
	if email, err = Email(email); err != nil {
		return "", false, err
	}
	err = store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		if err := store.Lock(ctx, tx, "bootstrap"); err != nil {
			return err
		}
		exists, err := tx.User.Query().Where(user.RoleEQ(user.RoleSuperadmin)).Exist(ctx)
		if err != nil || exists {
			return err
		}
		generated, created = password.Generate(generatedPassword), true
		return s.first(ctx, tx, email, generated)
	})
	if err != nil {
		return "", false, fmt.Errorf("create the first superadmin: %w", err)
	}
	return generated, created, nil
}

func (s *Service) first(ctx context.Context, tx *ent.Tx, email, generated string) error {
	hash, err := s.passwords.Hash(ctx, generated)
	if err != nil {
		return err
	}
	if err := tx.Domain.Create().SetName(firstName).OnConflictColumns(domain.FieldName).Ignore().Exec(ctx); err != nil {
		return fmt.Errorf("domain: %w", err)
	}
	d, err := tx.Domain.Query().Where(domain.Name(firstName)).Only(ctx)
	if err != nil {
		return fmt.Errorf("domain: %w", err)
	}
	err = tx.Project.Create().SetName(firstName).SetDomainID(d.ID).
		OnConflictColumns(project.FieldDomainID, project.FieldName).Ignore().Exec(ctx)
	if err != nil {
		return fmt.Errorf("project: %w", err)
	}
	p, err := tx.Project.Query().Where(project.DomainID(d.ID), project.Name(firstName)).Only(ctx)
	if err != nil {
		return fmt.Errorf("project: %w", err)
	}
	err = tx.ResourceGroup.Create().SetName(firstName).SetPublic(true).
		OnConflictColumns(resourcegroup.FieldName).Ignore().Exec(ctx)
	if err != nil {
		return fmt.Errorf("resource group: %w", err)
	}
	u, err := tx.User.Create().
		SetEmail(email).SetUsername(firstUser).SetPasswordHash(hash).SetInitialPassword(true).
		SetRole(user.RoleSuperadmin).SetDomainID(d.ID).
		Save(ctx)
	if err != nil {
		return fmt.Errorf("user: %w", err)
	}
	if err := tx.Membership.Create().SetUserID(u.ID).SetProjectID(p.ID).SetAdmin(true).Exec(ctx); err != nil {
		return fmt.Errorf("membership: %w", err)
	}
	return nil
}
