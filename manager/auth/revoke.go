package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/accesstoken"
	"github.com/berthhq/berth/ent/keypair"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/sshkey"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// RevokeLoginSessionInput names the login to end.
type RevokeLoginSessionInput struct{ ID uuid.UUID }

// LoginSessionPayload is the id of the ended login.
type LoginSessionPayload struct{ ID uuid.UUID }

// RevokeLoginSession ends a login of the viewer, or of a user whose logins they can end, and
// closes its connections.
func (s *Service) RevokeLoginSession(ctx context.Context, in RevokeLoginSessionInput) (*LoginSessionPayload, error) {
	v, err := person(ctx)
	if err != nil {
		return nil, err
	}
	missing := problem.NotFound("login").WithField("id")
	l, err := s.client.LoginSession.Query().Where(loginsession.ID(in.ID)).WithUser().Only(viewer.SystemContext(ctx))
	if ent.IsNotFound(err) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("read login: %w", err)
	}
	on := credentialOf(l.Edges.User)
	if !v.May(access.Delete, access.Credential, on) && !v.May(access.Read, access.Credential, on) {
		return nil, missing
	}
	if _, err := permit.Check(ctx, access.Delete, access.Credential, on); err != nil {
		return nil, err
	}
	if err := s.end(ctx, loginattempt.ResultRevoked, loginsession.ID(l.ID)); err != nil {
		return nil, fmt.Errorf("end login: %w", err)
	}
	return &LoginSessionPayload{ID: l.ID}, nil
}

// Logins returns a query for the valid logins of the viewer, or of a user whose logins they can
// see or end, and the context to run it in.
func (s *Service) Logins(ctx context.Context, of *uuid.UUID) (*ent.LoginSessionQuery, context.Context, error) {
	v, err := person(ctx)
	if err != nil {
		return nil, nil, err
	}
	if of == nil || *of == v.User {
		return s.client.LoginSession.Query().Where(loginsession.UserID(v.User), living()), ctx, nil
	}
	u, err := s.client.User.Get(ctx, *of)
	if err != nil {
		return nil, nil, permit.Missing(err, "user", "user")
	}
	if on := credentialOf(u); !v.May(access.Delete, access.Credential, on) && !v.May(access.Read, access.Credential, on) {
		return nil, nil, problem.Forbidden("you may not see the logins of this user")
	}
	return s.client.LoginSession.Query().Where(loginsession.UserID(u.ID), living()), viewer.SystemContext(ctx), nil
}

// credentialOf returns the scopes of a user's credentials.
func credentialOf(u *ent.User) access.Object { return access.Object{Domain: u.DomainID, Owner: u.ID} }

// person returns the viewer if it is a user.
func person(ctx context.Context) (*viewer.Viewer, error) {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() || v.IsSystem() {
		return nil, problem.Unauthenticated("log in first")
	}
	return v, nil
}

// self returns the viewer if it is the user in person: without a token or keypair, and not
// another user who acts as them.
func self(ctx context.Context) (*viewer.Viewer, error) {
	v, err := person(ctx)
	if err != nil {
		return nil, err
	}
	if k := id.KindOf(v.Credential); k == id.AccessToken || k == id.Keypair || v.Scopes != nil || v.Actor != uuid.Nil {
		return nil, problem.Forbidden("only a login with a password may change passwords and second factors")
	}
	return v, nil
}

// origin is the credential that creates another one. A credential that was created with a
// token or keypair ends with it; one that was created with a login does not.
type origin struct {
	id      *uuid.UUID // of an access token or keypair; nil: a login
	expires *time.Time
}

// originOf reads the viewer's credential, whose row is locked in tx because it may be ending
// concurrently.
func originOf(ctx context.Context, tx *ent.Tx, v *viewer.Viewer) (origin, error) {
	system := viewer.SystemContext(ctx)
	o := origin{id: &v.Credential}
	var err error
	switch id.KindOf(v.Credential) {
	case id.AccessToken:
		var t *ent.AccessToken
		if t, err = tx.AccessToken.Query().Where(accesstoken.ID(v.Credential), accesstoken.RevokedAtIsNil()).Only(system); err == nil {
			o.expires = t.ExpiresAt
		}
	case id.Keypair:
		var k *ent.Keypair
		if k, err = tx.Keypair.Query().Where(keypair.ID(v.Credential), keypair.Active(true)).Only(system); err == nil {
			o.expires = k.ExpiresAt
		}
	default:
		return origin{}, nil
	}
	if ent.IsNotFound(err) {
		return o, problem.Unauthenticated(refused)
	}
	if err != nil {
		return o, fmt.Errorf("read the credential of the request: %w", err)
	}
	return o, nil
}

// until returns the expiry of a new credential: the given time, but not after the expiry of
// its origin.
func (o origin) until(end *time.Time) *time.Time {
	if o.expires != nil && (end == nil || end.After(*o.expires)) {
		return o.expires
	}
	return end
}

// endMade revokes the credentials that were created with the given tokens and keypairs,
// recursively, in a transaction that locks the user's row. It returns the ids of the revoked
// ones, for Disconnect.
func (s *Service) endMade(ctx context.Context, tx *ent.Tx, makers ...uuid.UUID) ([]uuid.UUID, error) {
	var all []uuid.UUID
	for len(makers) > 0 {
		ended, err := s.endWhich(ctx, tx, accesstoken.MakerIDIn(makers...), keypair.MakerIDIn(makers...), sshkey.MakerIDIn(makers...))
		if err != nil {
			return nil, err
		}
		all, makers = append(all, ended...), ended
	}
	return all, nil
}

// EndCredentials revokes all access tokens, keypairs and SSH keys of a user in a transaction,
// and returns the ids of those that were valid.
func (s *Service) EndCredentials(ctx context.Context, tx *ent.Tx, user uuid.UUID) ([]uuid.UUID, error) {
	return s.endWhich(ctx, tx, accesstoken.UserID(user), keypair.UserID(user), sshkey.UserID(user))
}

// endWhich revokes tokens, deletes SSH keys and replaces the secrets of keypairs. Keypairs
// stay because policies refer to them; with the new secret, reactivation does not help an
// attacker who has the old one.
func (s *Service) endWhich(ctx context.Context, tx *ent.Tx, tokens predicate.AccessToken, pairs predicate.Keypair, keys predicate.SSHKey) ([]uuid.UUID, error) {
	ctx = viewer.SystemContext(ctx)
	ended, err := tx.AccessToken.Query().Where(tokens, accesstoken.RevokedAtIsNil()).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read access tokens: %w", err)
	}
	if err := tx.AccessToken.Update().Where(accesstoken.IDIn(ended...)).SetRevokedAt(clock.Now()).Exec(ctx); err != nil {
		return nil, fmt.Errorf("revoke access tokens: %w", err)
	}
	list, err := tx.Keypair.Query().Where(pairs).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read keypairs: %w", err)
	}
	for _, k := range list {
		err := k.Update().SetSecretSealed(s.keys.Seal(seal.KeypairSecret, []byte(newSecret()))).
			SetActive(false).SetRotatedAt(clock.Now()).ClearMakerID().ClearExpiresAt().Exec(ctx)
		if err != nil {
			return nil, fmt.Errorf("end keypair %s: %w", k.ID, err)
		}
		ended = append(ended, k.ID)
	}
	gone, err := tx.SSHKey.Query().Where(keys).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read ssh keys: %w", err)
	}
	if _, err := tx.SSHKey.Delete().Where(sshkey.IDIn(gone...)).Exec(ctx); err != nil {
		return nil, fmt.Errorf("delete ssh keys: %w", err)
	}
	return append(ended, gone...), nil
}

// disconnect closes connections that use any of the credentials.
func (s *Service) disconnect(ctx context.Context, credentials []uuid.UUID) {
	for _, c := range credentials {
		s.Disconnect(ctx, c)
	}
}

// CredentialStatus is valid, or the reason why a credential is not accepted.
type CredentialStatus string

// The statuses. Credentials of an inactive owner that have not expired count as inactive.
const (
	StatusActive        CredentialStatus = "active"
	StatusInactive      CredentialStatus = "inactive"
	StatusExpired       CredentialStatus = "expired"
	StatusRevoked       CredentialStatus = "revoked"
	StatusOwnerInactive CredentialStatus = "owner_inactive"
)

// StatusOf returns the status of a credential from the fields of its row and its owner.
func StatusOf(revoked, inactive bool, expires *time.Time, owner bool) CredentialStatus {
	switch {
	case revoked:
		return StatusRevoked
	case expires != nil && !expires.After(clock.Now()):
		return StatusExpired
	case inactive:
		return StatusInactive
	case !owner:
		return StatusOwnerInactive
	}
	return StatusActive
}
