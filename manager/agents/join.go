package agents

import (
	"context"
	"fmt"
	"strings"

	"github.com/berthhq/berth/ent/jointoken"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/manager/permit"
)

// CreateJoinToken creates a token and returns the command line that uses it.
func (s *Service) CreateJoinToken(ctx context.Context, in CreateJoinTokenInput) (*JoinTokenPayload, error) {
	if _, err := permit.Check(ctx, access.Create, access.System, access.Object{}); err != nil {
		return nil, err
	}
	token, expires, err := s.Enrolments.NewToken(ctx, in.Role)
	if err != nil {
		return nil, err
	}
	return &JoinTokenPayload{Token: token, ExpiresAt: expires, Command: s.command(in.Role, token)}, nil
}

func (s *Service) command(role jointoken.Role, token string) string {
	return fmt.Sprintf("berthd %s --manager %s --ca-fingerprint %s --join-token %s",
		role, strings.Join(s.Managers(), ","), s.Fingerprint, token)
}
