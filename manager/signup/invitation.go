package signup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/invitation"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

const (
	defaultHours = 3 * 24
	maxHours     = 30 * 24
	secretBytes  = 32 // guessing one needs no throttle
)

// CreateInvitationInput names the invited person and the domain and project of the new user.
type CreateInvitationInput struct {
	Email          string
	Domain         uuid.UUID
	Project        *uuid.UUID
	ExpiresInHours *int
}

// RevokeInvitationInput names the invitation to revoke.
type RevokeInvitationInput struct{ ID uuid.UUID }

// InvitationPayload is an invitation after a change. The secret and the link, a path of the
// web page, are set only after its creation.
type InvitationPayload struct {
	Invitation *ent.Invitation
	Secret     *string
	Link       *string
}

// CreateInvitation lets one person sign up; only admins of the domain can.
func (s *Service) CreateInvitation(ctx context.Context, in CreateInvitationInput) (*InvitationPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	d, err := s.client.Domain.Get(ctx, in.Domain)
	if err != nil {
		return nil, permit.Missing(err, "domain", "domain")
	}
	on := access.Object{Domain: d.ID}
	if in.Project != nil {
		p, err := s.client.Project.Get(ctx, *in.Project)
		if err == nil && p.DomainID != d.ID {
			err = problem.NotFound("project of this domain").WithField("project")
		}
		if err != nil {
			return nil, permit.Missing(err, "project", "project")
		}
		on.Project = p.ID
	}
	if _, err := permit.Check(ctx, access.Create, access.Invitation, on); err != nil {
		return nil, err
	}
	if !d.Active || d.SignUp == domain.SignUpOff {
		return nil, problem.Precondition("sign-up is turned off for this domain").WithField("domain")
	}
	email, err := identity.Email(in.Email)
	if err != nil {
		return nil, err
	}
	hours := defaultHours
	if in.ExpiresInHours != nil {
		hours = *in.ExpiresInHours
	}
	if hours < 1 || hours > maxHours {
		return nil, problem.Invalid("expiresInHours", "must be between 1 and %d", maxHours).WithLimit(fmt.Sprint(maxHours))
	}
	secret := newSecret()
	create := s.client.Invitation.Create().
		SetHash(hash(secret)).SetEmail(email).SetExpiresAt(clock.Now().Add(time.Duration(hours) * time.Hour)).
		SetDomainID(d.ID).SetNillableProjectID(in.Project)
	if v.User != uuid.Nil {
		create.SetCreatorID(v.User)
	}
	made, err := create.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create invitation: %w", err)
	}
	// servers do not log the part after #
	link := "/signup#invitation=" + secret
	return &InvitationPayload{Invitation: made, Secret: &secret, Link: &link}, nil
}

// RevokeInvitation revokes an invitation. It requires the permission to create it. A used one
// is a failed precondition; revoking it again changes nothing.
func (s *Service) RevokeInvitation(ctx context.Context, in RevokeInvitationInput) (*InvitationPayload, error) {
	found, err := s.client.Invitation.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "invitation", "id")
	}
	on := access.Object{ID: found.ID, Domain: found.DomainID}
	if found.ProjectID != nil {
		on.Project = *found.ProjectID
	}
	if _, err := permit.Check(ctx, access.Delete, access.Invitation, on); err != nil {
		return nil, err
	}
	n, err := s.client.Invitation.Update().
		Where(invitation.ID(in.ID), invitation.UsedAtIsNil(), invitation.RevokedAtIsNil()).SetRevokedAt(clock.Now()).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("revoke invitation: %w", err)
	}
	if found, err = s.client.Invitation.Get(ctx, in.ID); err != nil {
		return nil, permit.Missing(err, "invitation", "id")
	}
	if n == 0 && found.UsedAt != nil {
		return nil, problem.Precondition("the invitation has already been used")
	}
	return &InvitationPayload{Invitation: found}, nil
}

// errInvitation does not reveal whether the invitation or the e-mail address is wrong.
func errInvitation() error {
	return problem.Forbidden("the invitation is for another e-mail address or no longer valid").WithField("invitation")
}

// byInvitation creates an active user for an invitation, once.
func (s *Service) byInvitation(ctx context.Context, in form) error {
	inv, err := s.client.Invitation.Query().Where(invitation.Hash(hash(in.Invitation))).WithDomain().Only(ctx)
	if ent.IsNotFound(err) {
		if _, err := s.open(ctx, in.Domain); errdefs.IsNotFound(err) {
			return err // without sign-up, the error is not about the invitation
		}
		return errInvitation()
	}
	if err != nil {
		return fmt.Errorf("read invitation: %w", err)
	}
	d := inv.Edges.Domain
	if !d.Active || d.SignUp == domain.SignUpOff {
		return errOff()
	}
	if in.Domain != "" && in.Domain != d.Name {
		return errInvitation()
	}
	p, err := s.check(ctx, in, d)
	if err != nil {
		return err
	}
	if p.Email != inv.Email {
		return errInvitation()
	}
	p.Project, p.Status = inv.ProjectID, user.StatusActive
	err = store.InTx(viewer.SystemContext(ctx), s.client, func(tx *ent.Tx) error {
		// of two concurrent requests, one finds it used
		n, err := tx.Invitation.Update().
			Where(invitation.ID(inv.ID), invitation.UsedAtIsNil(), invitation.RevokedAtIsNil(), invitation.ExpiresAtGT(clock.Now())).
			SetUsedAt(clock.Now()).Save(ctx)
		if err != nil {
			return fmt.Errorf("use invitation: %w", err)
		}
		if n == 0 {
			return errInvitation()
		}
		_, err = Join(ctx, tx, p)
		return err
	})
	if ent.IsConstraintError(err) {
		return errInvitation() // a user with the address exists
	}
	return err
}

func newSecret() string {
	b := make([]byte, secretBytes)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// hash is the stored form of a secret. Secrets are random, so a fast hash suffices.
func hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
