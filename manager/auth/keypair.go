package auth

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/keypair"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// CreateKeypairInput describes a new keypair.
type CreateKeypairInput struct {
	Name      string
	RateLimit *int // requires the permission to set limits
}

// UpdateKeypairInput changes the fields that are not nil.
type UpdateKeypairInput struct {
	ID             uuid.UUID
	Name           *string
	Active         *bool
	MakeDefault    *bool
	RateLimit      *int
	ClearRateLimit *bool
}

// RotateKeypairInput names the keypair whose secret is replaced.
type RotateKeypairInput struct{ ID uuid.UUID }

// DeleteKeypairInput names the keypair to delete.
type DeleteKeypairInput struct{ ID uuid.UUID }

// KeypairPayload is a keypair; the secret is set only after its creation.
type KeypairPayload struct {
	Keypair *ent.Keypair
	Secret  *string
}

// DeleteKeypairPayload is the id of the deleted keypair.
type DeleteKeypairPayload struct{ ID uuid.UUID }

const (
	maxKeypairs = 20 // per user
	maxRate     = 10_000_000
)

// CreateKeypair creates a keypair with the permissions of its user. The first one is the
// default.
func (s *Service) CreateKeypair(ctx context.Context, in CreateKeypairInput) (*KeypairPayload, error) {
	v, err := s.maker(ctx)
	if err != nil {
		return nil, err
	}
	if err := unnarrowed(v); err != nil {
		return nil, err
	}
	if err := naming.Name("name", in.Name); err != nil {
		return nil, err
	}
	if err := checkRate(ctx, in.RateLimit, v.Domain); err != nil {
		return nil, err
	}
	tx, err := s.changeOf(ctx, v.User)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // no effect after a commit
	o, err := originOf(ctx, tx, v)
	if err != nil {
		return nil, err
	}
	n, err := tx.Keypair.Query().Where(keypair.UserID(v.User)).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count keypairs: %w", err)
	}
	if n >= maxKeypairs {
		return nil, problem.Exhausted("you have %d keypairs, delete one first", n).WithLimit(fmt.Sprint(maxKeypairs))
	}
	secret := newSecret()
	k, err := tx.Keypair.Create().
		SetAccessKey(newAccessKey()).SetName(in.Name).SetSecretSealed(s.keys.Seal(seal.KeypairSecret, []byte(secret))).
		SetIsDefault(n == 0).SetNillableRateLimit(in.RateLimit).SetUserID(v.User).
		SetNillableMakerID(o.id).SetNillableExpiresAt(o.expires).
		Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create keypair: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	return &KeypairPayload{Keypair: k.Unwrap(), Secret: &secret}, nil
}

// UpdateKeypair renames a keypair, deactivates or activates it, makes it the default, or sets
// its rate limit.
func (s *Service) UpdateKeypair(ctx context.Context, in UpdateKeypairInput) (*KeypairPayload, error) {
	k, on, err := s.keypair(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := mayUpdate(ctx, in, on); err != nil {
		return nil, err
	}
	tx, err := s.changeOf(ctx, k.UserID)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // no effect after a commit
	change := tx.Keypair.UpdateOneID(k.ID).SetNillableName(in.Name).SetNillableActive(in.Active).SetNillableRateLimit(in.RateLimit)
	if is(in.ClearRateLimit) {
		change.ClearRateLimit()
	}
	if is(in.MakeDefault) {
		err := tx.Keypair.Update().Where(keypair.UserID(k.UserID), keypair.IsDefault(true), keypair.IDNEQ(k.ID)).
			SetIsDefault(false).Exec(ctx)
		if err != nil {
			return nil, fmt.Errorf("take the default from another keypair: %w", err)
		}
		change.SetIsDefault(true)
	}
	after, err := change.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("change keypair: %w", err)
	}
	var made []uuid.UUID
	if !after.Active {
		if made, err = s.endMade(ctx, tx, k.ID); err != nil {
			return nil, err
		}
		made = append(made, k.ID)
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	s.disconnect(ctx, made)
	return &KeypairPayload{Keypair: after.Unwrap()}, nil
}

func mayUpdate(ctx context.Context, in UpdateKeypairInput, on access.Object) error {
	if in.Name != nil {
		if err := naming.Name("name", *in.Name); err != nil {
			return err
		}
	}
	if in.RateLimit != nil && is(in.ClearRateLimit) {
		return problem.Invalid("rateLimit", "cannot be set and cleared at once")
	}
	if in.MakeDefault != nil && !*in.MakeDefault {
		return problem.Invalid("makeDefault", "make another keypair the default instead")
	}
	limit := in.RateLimit
	if is(in.ClearRateLimit) {
		limit = new(int)
		*limit = defaultRate
	}
	if err := checkRate(ctx, limit, on.Domain); err != nil {
		return err
	}
	op := access.Update
	if in.Name == nil && in.MakeDefault == nil && (in.Active == nil || !*in.Active) {
		op = access.Delete // deactivation needs less permission than a change
		if in.Active == nil && limit != nil {
			return nil // the permission to set limits suffices
		}
	}
	_, err := permit.Check(ctx, op, access.Credential, on)
	return err
}

// RotateKeypair replaces the secret of one of the viewer's keypairs. The old secret, and
// credentials that were created with it, become invalid at once. A secret that is created with
// a token ends with the token.
func (s *Service) RotateKeypair(ctx context.Context, in RotateKeypairInput) (*KeypairPayload, error) {
	k, on, err := s.keypair(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	v, err := permit.Check(ctx, access.Update, access.Credential, on)
	if err != nil {
		return nil, err
	}
	if k.UserID != v.User || v.Actor != uuid.Nil {
		return nil, problem.Forbidden("only the owner may read the secret; deactivate the keypair instead")
	}
	if err := unnarrowed(v); err != nil {
		return nil, err
	}
	tx, err := s.changeOf(ctx, v.User)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // no effect after a commit
	o, err := originOf(ctx, tx, v)
	if err != nil {
		return nil, err
	}
	if v.Credential == k.ID { // the new secret expires when the old one would have
		o = origin{id: k.MakerID, expires: k.ExpiresAt}
	}
	secret := newSecret()
	change := tx.Keypair.UpdateOneID(k.ID).SetSecretSealed(s.keys.Seal(seal.KeypairSecret, []byte(secret))).SetRotatedAt(clock.Now())
	if change.SetNillableMakerID(o.id); o.id == nil {
		change.ClearMakerID()
	}
	if change.SetNillableExpiresAt(o.expires); o.expires == nil {
		change.ClearExpiresAt()
	}
	if k, err = change.Save(ctx); err != nil {
		return nil, fmt.Errorf("rotate keypair: %w", err)
	}
	made, err := s.endMade(ctx, tx, k.ID)
	if err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	s.disconnect(ctx, append(made, k.ID))
	return &KeypairPayload{Keypair: k.Unwrap(), Secret: &secret}, nil
}

// DeleteKeypair deletes a keypair and revokes the credentials that were created with it. The
// default keypair can only be deleted last.
func (s *Service) DeleteKeypair(ctx context.Context, in DeleteKeypairInput) (*DeleteKeypairPayload, error) {
	k, on, err := s.keypair(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if _, err := permit.Check(ctx, access.Delete, access.Credential, on); err != nil {
		return nil, err
	}
	tx, err := s.changeOf(ctx, k.UserID)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // no effect after a commit
	others, err := tx.Keypair.Query().Where(keypair.UserID(k.UserID), keypair.IDNEQ(k.ID)).Exist(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for other keypairs: %w", err)
	}
	query := tx.Keypair.Delete().Where(keypair.ID(k.ID))
	if others {
		query.Where(keypair.IsDefault(false))
	}
	n, err := query.Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("delete keypair: %w", err)
	}
	if n == 0 {
		return nil, problem.Precondition("this is the default keypair; make another one the default first").WithField("id")
	}
	made, err := s.endMade(ctx, tx, k.ID)
	if err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	s.disconnect(ctx, append(made, k.ID))
	return &DeleteKeypairPayload{ID: k.ID}, nil
}

// keypair reads a visible keypair and its scopes.
func (s *Service) keypair(ctx context.Context, id uuid.UUID) (*ent.Keypair, access.Object, error) {
	if _, err := person(ctx); err != nil {
		return nil, access.Object{}, err
	}
	k, err := s.client.Keypair.Get(ctx, id)
	if err != nil {
		return nil, access.Object{}, permit.Missing(err, "keypair", "id")
	}
	on, err := s.credentialOf(ctx, k.ID, k.UserID)
	return k, on, err
}

// credentialOf returns the scopes of a user's credential.
func (s *Service) credentialOf(ctx context.Context, credential, owner uuid.UUID) (access.Object, error) {
	on := access.Object{ID: credential, Owner: owner}
	if v := viewer.From(ctx); v.User == owner {
		on.Domain = v.Domain
		return on, nil
	}
	u, err := s.client.User.Query().Where(user.ID(owner)).Select(user.FieldDomainID).Only(viewer.SystemContext(ctx))
	if err != nil {
		return on, fmt.Errorf("read the owner: %w", err)
	}
	on.Domain = u.DomainID
	return on, nil
}

// maker returns the viewer if they can create credentials for themselves.
func (s *Service) maker(ctx context.Context) (*viewer.Viewer, error) {
	v, err := person(ctx)
	if err != nil {
		return nil, err
	}
	if v, err = permit.Check(ctx, access.Create, access.Credential, access.Object{Owner: v.User, Domain: v.Domain}); err != nil {
		return nil, err
	}
	if v.Actor != uuid.Nil {
		return nil, problem.Forbidden("credentials cannot be created while acting as another user")
	}
	return v, nil
}

// unnarrowed returns an error for a token with fewer permissions than its user, because
// credentials that it creates must not have more.
func unnarrowed(v *viewer.Viewer) error {
	for _, scope := range access.TokenScopes() {
		if !v.Allows(scope) {
			return problem.Forbidden("the access token lacks the scope %s, which a keypair has", scope)
		}
	}
	if v.Within != uuid.Nil {
		return problem.Forbidden("the access token is limited to one project, and a keypair is not")
	}
	return nil
}

// checkRate checks a rate limit, which only viewers who can set limits may give.
func checkRate(ctx context.Context, limit *int, domain uuid.UUID) error {
	if limit == nil {
		return nil
	}
	if *limit < 1 || *limit > maxRate {
		return problem.Invalid("rateLimit", "must be between 1 and %d", maxRate).WithLimit(fmt.Sprint(maxRate))
	}
	_, err := permit.Check(ctx, access.Update, access.ResourcePolicy, access.Object{Domain: domain})
	return err
}

// changeOf begins a transaction that changes the credentials of a user. A lock makes such
// changes sequential.
func (s *Service) changeOf(ctx context.Context, id uuid.UUID) (*ent.Tx, error) {
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	if _, err := tx.User.Query().Where(user.ID(id)).ForUpdate().OnlyID(viewer.SystemContext(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("lock user: %w", err), tx.Rollback())
	}
	return tx, nil
}

func is(b *bool) bool { return b != nil && *b }

// The prefixes by which scanners and users recognize the parts of a keypair.
const (
	accessKeyMark = "BK"
	secretMark    = "bks_"
)

// newAccessKey returns a new access key: the prefix and 18 characters of base32.
func newAccessKey() string {
	b := make([]byte, 12)
	rand.Read(b) // never fails
	return accessKeyMark + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)[:18]
}

// newSecret returns a new secret of a keypair: the prefix and base62.
func newSecret() string { return secretMark + base62() }

// base62 returns 43 random characters with 256 bits of entropy.
func base62() string {
	b := make([]byte, secretBytes)
	rand.Read(b) // never fails
	digits := new(big.Int).SetBytes(b).Text(62)
	const width = 43 // 62^43 > 2^256
	return strings.Repeat("0", width-len(digits)) + digits
}
