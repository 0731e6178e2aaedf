// Package enrolment decides which machines belong to the cluster: it creates and redeems join
// tokens, checks the certificates that were issued for them, and revokes the certificates of a
// machine. The services of agents and of storage proxies import it.
package enrolment

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/jointoken"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
)

const (
	// tokenLife is the validity of a join token.
	tokenLife = time.Hour
	// watchEvery is how soon a revocation is noticed if its event was lost.
	watchEvery = 5 * time.Second
)

// Service enrols machines.
type Service struct {
	client *ent.Client
	bus    *event.Bus
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{client: cfg.Client, bus: cfg.Bus} }

// NewToken creates a join token for a role. It can be used once, within an hour.
func (s *Service) NewToken(ctx context.Context, role jointoken.Role) (string, time.Time, error) {
	token := "join-" + strings.ToLower(rand.Text())
	hash := sha256.Sum256([]byte(token))
	expires := time.Now().UTC().Add(tokenLife).Truncate(time.Microsecond)
	err := s.client.JoinToken.Create().SetHash(hash[:]).SetRole(role).SetExpiresAt(expires).Exec(ctx)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("store join token: %w", err)
	}
	return token, expires, nil
}

// Join redeems the one-time token of a machine. It is the hub's Join.
func (s *Service) Join(ctx context.Context, token, role, name string) error {
	ctx = viewer.SystemContext(ctx)
	hash := sha256.Sum256([]byte(token))
	n, err := s.client.JoinToken.Update().
		Where(jointoken.Hash(hash[:]), jointoken.RoleEQ(jointoken.Role(role)), jointoken.UsedAtIsNil(), jointoken.ExpiresAtGT(time.Now())).
		SetUsedAt(time.Now()).SetUsedBy(name).Save(ctx)
	if err != nil {
		return fmt.Errorf("use join token: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("the join token is unknown, used, expired or for another role: %w", errdefs.ErrPermissionDenied)
	}
	return nil
}

// Admit returns an error for a certificate without a valid join of this role and name. It is
// the hub's Admit.
func (s *Service) Admit(ctx context.Context, role, name, enrolment string) error {
	ok, err := admitted(viewer.SystemContext(ctx), s.client.JoinToken.Query(), role, name, enrolment)
	if err != nil {
		return fmt.Errorf("look up the join of %s %s: %w: %w", role, name, err, errdefs.ErrUnavailable)
	}
	return refusal(ok, role, name)
}

// AdmitIn is Admit inside a transaction that changes rows of the machine.
func (s *Service) AdmitIn(ctx context.Context, tx *ent.Tx, role, name, enrolment string) error {
	ok, err := admitted(ctx, tx.JoinToken.Query(), role, name, enrolment)
	if err != nil {
		return fmt.Errorf("look up the join of %s %s: %w", role, name, err)
	}
	return refusal(ok, role, name)
}

func refusal(ok bool, role, name string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s %s was removed, or never joined: %w", role, name, errdefs.ErrPermissionDenied)
}

// admitted reports whether the join of a certificate is valid. Certificates of versions that
// did not record the join are valid until any join of their name is revoked.
func admitted(ctx context.Context, q *ent.JoinTokenQuery, role, name, enrolment string) (bool, error) {
	if enrolment == "" {
		joins, err := q.Where(of(role, name)...).All(ctx)
		for _, j := range joins {
			if j.RevokedAt != nil {
				return false, err
			}
		}
		return len(joins) > 0, err
	}
	hash, err := hex.DecodeString(enrolment)
	if err != nil {
		return false, nil
	}
	return q.Where(append(of(role, name), jointoken.Hash(hash), jointoken.RevokedAtIsNil())...).Exist(ctx)
}

func of(role, name string) []predicate.JoinToken {
	return []predicate.JoinToken{jointoken.RoleEQ(jointoken.Role(role)), jointoken.UsedBy(name)}
}

// Revoke makes all certificates of a machine invalid when tx commits. Call Revoked afterwards.
func (s *Service) Revoke(ctx context.Context, tx *ent.Tx, role, name string) error {
	err := tx.JoinToken.Update().Where(append(of(role, name), jointoken.RevokedAtIsNil())...).SetRevokedAt(clock.Now()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("revoke the certificates of %s %s: %w", role, name, err)
	}
	return nil
}

// Revoked makes all managers close the tunnels of revoked certificates.
func (s *Service) Revoked(ctx context.Context) { s.bus.Publish(ctx, event.Event{Topic: event.Revoked}) }

// Watch closes the tunnels of revoked certificates until ctx ends; peers returns the tunnels
// of this manager.
func (s *Service) Watch(ctx context.Context, peers func() []*cluster.Peer) {
	events := s.bus.Subscribe(ctx, event.Revoked)
	tick := clock.NewTicker("revoked certificates", watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
		case <-tick.C:
		}
		revoked, err := s.client.JoinToken.Query().Where(jointoken.RevokedAtNotNil()).All(viewer.SystemContext(ctx))
		if err != nil {
			continue // retried at the next check
		}
		for _, p := range peers() {
			if slices.ContainsFunc(revoked, func(j *ent.JoinToken) bool { return covers(j, p) }) {
				p.Close()
			}
		}
	}
}

// covers reports whether a tunnel's certificate was issued for a join. A certificate that
// names no join matches any join of its name.
func covers(j *ent.JoinToken, p *cluster.Peer) bool {
	return string(j.Role) == p.Role && j.UsedBy == p.Name && (p.Enrolment == "" || p.Enrolment == hex.EncodeToString(j.Hash))
}
