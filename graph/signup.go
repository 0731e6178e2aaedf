package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/invitation"
	"github.com/berthhq/berth/manager/signup"
)

// mostInvitations is the number of listed invitations; older ones have expired.
const mostInvitations = 500

func (r queryResolver) Invitations(ctx context.Context) ([]*ent.Invitation, error) {
	q, err := r.Client.Invitation.Query().CollectFields(ctx)
	if err != nil {
		return nil, err
	}
	return q.Order(ent.Desc(invitation.FieldCreatedAt)).Limit(mostInvitations).All(ctx)
}

func (r queryResolver) SignUpOffer(ctx context.Context) (*signup.SignUpOffer, error) {
	return r.SignUps.Offer(ctx)
}

func (r mutationResolver) CreateInvitation(ctx context.Context, in signup.CreateInvitationInput) (*signup.InvitationPayload, error) {
	return r.SignUps.CreateInvitation(ctx, in)
}

func (r mutationResolver) RevokeInvitation(ctx context.Context, in signup.RevokeInvitationInput) (*signup.InvitationPayload, error) {
	return r.SignUps.RevokeInvitation(ctx, in)
}
