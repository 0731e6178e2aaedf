// Package key manages the credentials for requests to models: who has them, what they are for, and how much they may use.
package key

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deploymentkey"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/modelapi"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

const (
	// Prefix begins every key, so that people and scanners recognize one.
	Prefix = "bmk_"
	shown  = len(Prefix) + 6

	maxKeys  = 200 // valid ones of a user
	maxRate  = 1_000_000_000
	maxTotal = int64(1) << 50
)

// CreateDeploymentKeyInput describes a key. A limit of 0 is none.
type CreateDeploymentKeyInput struct {
	Name              string
	Deployment        *uuid.UUID
	Apis              []modelapi.API // nil: all
	ExpiresAt         *time.Time
	RequestsPerMinute *int
	TokensPerMinute   *int
	TokenBudget       *int64
}

// UpdateDeploymentKeyInput changes the limits that are not nil.
type UpdateDeploymentKeyInput struct {
	ID                uuid.UUID
	RequestsPerMinute *int
	TokensPerMinute   *int
	TokenBudget       *int64
}

// RevokeDeploymentKeyInput names the key to revoke.
type RevokeDeploymentKeyInput struct{ ID uuid.UUID }

// DeploymentKeyPayload is a key after a change.
type DeploymentKeyPayload struct{ Key *ent.DeploymentKey }

// CreateDeploymentKeyPayload is a new key with its secret.
type CreateDeploymentKeyPayload struct {
	Key    *ent.DeploymentKey
	Secret string
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus
}

// Service creates, changes and revokes keys.
type Service struct{ Config }

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg} }

// CreateDeploymentKey creates a key of the viewer.
func (s *Service) CreateDeploymentKey(ctx context.Context, in CreateDeploymentKeyInput) (*CreateDeploymentKeyPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	if err := naming.Name("name", in.Name); err != nil {
		return nil, err
	}
	if err := limits(in.RequestsPerMinute, in.TokensPerMinute, in.TokenBudget); err != nil {
		return nil, err
	}
	apis, err := restriction(in.Apis)
	if err != nil {
		return nil, err
	}
	if in.ExpiresAt != nil && !in.ExpiresAt.After(clock.Now()) {
		return nil, problem.Invalid("expiresAt", "must be in the future")
	}
	if in.Deployment != nil {
		d, err := s.Client.Deployment.Get(ctx, *in.Deployment)
		if err != nil {
			return nil, permit.Missing(err, "deployment", "deployment")
		}
		if d.EndedAt != nil {
			return nil, problem.Precondition("deployment %s has ended", d.Name).WithField("deployment")
		}
	}
	secret := Prefix + rand.Text()
	var row *ent.DeploymentKey
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := room(ctx, tx, v); err != nil {
			return err
		}
		row, err = tx.DeploymentKey.Create().SetName(in.Name).SetPrefix(secret[:shown]).SetHash(Hash(secret)).
			SetUserID(v.User).SetDomainID(v.Domain).SetNillableDeploymentID(in.Deployment).SetApis(apis).SetNillableExpiresAt(in.ExpiresAt).
			SetNillableRequestsPerMinute(in.RequestsPerMinute).SetNillableTokensPerMinute(in.TokensPerMinute).SetNillableTokenBudget(in.TokenBudget).
			Save(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &CreateDeploymentKeyPayload{Key: row.Unwrap(), Secret: secret}, nil
}

// restriction returns the names to store of the groups of APIs that a key may use, in their order; none for all groups.
func restriction(asked []modelapi.API) ([]string, error) {
	if asked != nil && len(asked) == 0 {
		return nil, problem.Invalid("apis", "must name at least one API")
	}
	for _, a := range asked {
		if !slices.Contains(modelapi.All(), a) {
			return nil, problem.Invalid("apis", "%.100q is not a group of APIs", a)
		}
	}
	names := []string{}
	for _, a := range modelapi.All() {
		if slices.Contains(asked, a) {
			names = append(names, string(a))
		}
	}
	if len(names) == len(modelapi.All()) {
		return []string{}, nil // also those that later versions add
	}
	return names, nil
}

// APIs returns the groups of APIs that a key may use.
func APIs(row *ent.DeploymentKey) []modelapi.API {
	return slices.DeleteFunc(modelapi.All(), func(a modelapi.API) bool { return !modelapi.Allows(row.Apis, a) })
}

// room checks that a user can have one more key.
func room(ctx context.Context, tx *ent.Tx, v *viewer.Viewer) error {
	if err := store.Lock(ctx, tx, "deployment keys of "+v.User.String()); err != nil {
		return err
	}
	n, err := tx.DeploymentKey.Query().Where(deploymentkey.UserID(v.User), deploymentkey.RevokedAtIsNil(),
		deploymentkey.Or(deploymentkey.ExpiresAtIsNil(), deploymentkey.ExpiresAtGT(clock.Now()))).Count(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("count keys: %w", err)
	}
	if n >= maxKeys {
		return problem.Exhausted("you have %d valid keys, revoke one first", n).WithLimit(fmt.Sprint(maxKeys))
	}
	return nil
}

func limits(requests, tokens *int, budget *int64) error {
	for field, value := range map[string]*int{"requestsPerMinute": requests, "tokensPerMinute": tokens} {
		if value != nil && (*value < 0 || *value > maxRate) {
			return problem.Invalid(field, "%d is not between 0 and %d", *value, maxRate).WithLimit(fmt.Sprintf("0..%d", maxRate))
		}
	}
	if budget != nil && (*budget < 0 || *budget > maxTotal) {
		return problem.Invalid("tokenBudget", "%d is not between 0 and %d", *budget, maxTotal).WithLimit(fmt.Sprintf("0..%d", maxTotal))
	}
	return nil
}

// UpdateDeploymentKey changes the limits of a key.
func (s *Service) UpdateDeploymentKey(ctx context.Context, in UpdateDeploymentKeyInput) (*DeploymentKeyPayload, error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := limits(in.RequestsPerMinute, in.TokensPerMinute, in.TokenBudget); err != nil {
		return nil, err
	}
	if row.RevokedAt != nil {
		return nil, problem.Precondition("the key %s is revoked", row.Name).WithField("id")
	}
	row, err = row.Update().SetNillableRequestsPerMinute(in.RequestsPerMinute).SetNillableTokensPerMinute(in.TokensPerMinute).
		SetNillableTokenBudget(in.TokenBudget).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("change key: %w", err)
	}
	s.Bus.Publish(ctx, event.Event{Topic: event.Login, ID: row.ID})
	return &DeploymentKeyPayload{Key: row}, nil
}

// RevokeDeploymentKey revokes a key. Revoking it again changes nothing.
func (s *Service) RevokeDeploymentKey(ctx context.Context, in RevokeDeploymentKeyInput) (*DeploymentKeyPayload, error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if row.RevokedAt == nil {
		if row, err = row.Update().SetRevokedAt(clock.Now()).Save(ctx); err != nil {
			return nil, fmt.Errorf("revoke key: %w", err)
		}
	}
	s.Bus.Publish(ctx, event.Event{Topic: event.Login, ID: row.ID})
	return &DeploymentKeyPayload{Key: row}, nil
}

// find returns a key that the viewer can change: their own, or one for a deployment that they can change.
func (s *Service) find(ctx context.Context, id uuid.UUID) (*ent.DeploymentKey, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	row, err := s.Client.DeploymentKey.Query().Where(deploymentkey.ID(id)).WithDeployment().Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "key", "id")
	}
	if d := row.Edges.Deployment; d != nil && row.UserID != v.User {
		return row, permit.To(ctx, access.Update, d)
	}
	_, err = permit.Check(ctx, access.Delete, access.Credential, access.Object{ID: row.ID, Domain: row.DomainID, Owner: row.UserID})
	return row, err
}

// Hash returns what is stored of a key. Keys are random, so the hash needs no salt.
func Hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
