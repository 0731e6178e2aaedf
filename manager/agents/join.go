package agents

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent/jointoken"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// tokenLife is how long a join token may wait for its machine.
const tokenLife = time.Hour

// Join checks the one-time token of a machine and uses it up; it is the hub's
// Join.
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

// NewToken makes a join token for a role.
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

// CreateJoinToken makes a token and the command line that uses it.
func (s *Service) CreateJoinToken(ctx context.Context, in CreateJoinTokenInput) (*JoinTokenPayload, error) {
	if _, err := permit.Check(ctx, access.Create, access.System, access.Object{}); err != nil {
		return nil, err
	}
	token, expires, err := s.NewToken(ctx, in.Role)
	if err != nil {
		return nil, err
	}
	return &JoinTokenPayload{Token: token, ExpiresAt: expires, Command: s.command(in.Role, token)}, nil
}

func (s *Service) command(role jointoken.Role, token string) string {
	return fmt.Sprintf("berthd %s --manager %s --ca-fingerprint %s --join-token %s",
		role, strings.Join(s.managers(), ","), s.Fingerprint, token)
}
