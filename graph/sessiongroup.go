package graph

import (
	"context"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/session"
)

func (r queryResolver) SessionGroups(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.SessionGroupOrder, where *ent.SessionGroupWhereInput) (*ent.SessionGroupConnection, error) {
	return r.Client.SessionGroup.Query().Paginate(ctx, after, first, before, last, ent.WithSessionGroupOrder(orderBy), ent.WithSessionGroupFilter(where.Filter))
}

func (r mutationResolver) CreateSessionGroup(ctx context.Context, input session.CreateSessionGroupInput) (*session.SessionGroupPayload, error) {
	return r.Resolver.Sessions.CreateSessionGroup(ctx, input)
}

func (r mutationResolver) DeleteSessionGroup(ctx context.Context, input session.DeleteSessionGroupInput) (*session.DeleteSessionGroupPayload, error) {
	return r.Resolver.Sessions.DeleteSessionGroup(ctx, input)
}

// EndsAt returns the end of the session's own lifetime.
func (r sessionResolver) EndsAt(_ context.Context, s *ent.Session) (*time.Time, error) {
	return session.EndsAt(s), nil
}
