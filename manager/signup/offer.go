package signup

import (
	"context"
	"fmt"

	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/internal/viewer"
)

// SignUpOffer is the information that a person needs before they sign up.
type SignUpOffer struct {
	Mode  domain.SignUp // approval if any domain has it
	Named bool          // more than one domain allows sign-up
}

// Offer returns whether and how people can sign up.
func (s *Service) Offer(ctx context.Context) (*SignUpOffer, error) {
	modes, err := s.client.Domain.Query().Where(domain.Active(true), domain.SignUpNEQ(domain.SignUpOff)).
		Select(domain.FieldSignUp).Strings(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read how domains take sign-ups: %w", err)
	}
	offer := &SignUpOffer{Mode: domain.SignUpOff, Named: len(modes) > 1}
	for _, m := range modes {
		if offer.Mode != domain.SignUpApproval {
			offer.Mode = domain.SignUp(m)
		}
	}
	return offer, nil
}
