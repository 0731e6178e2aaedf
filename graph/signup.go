package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/signup"
)

func (r queryResolver) Invitations(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.InvitationOrder, where *ent.InvitationWhereInput) (*ent.InvitationConnection, error) {
	return r.Client.Invitation.Query().Paginate(ctx, after, first, before, last, ent.WithInvitationOrder(orderBy), ent.WithInvitationFilter(where.Filter))
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
