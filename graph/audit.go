package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/audit"
)

func (r queryResolver) AuditEntries(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.AuditEntryOrder, where *ent.AuditEntryWhereInput) (*ent.AuditEntryConnection, error) {
	return r.Client.AuditEntry.Query().Paginate(ctx, after, first, before, last, ent.WithAuditEntryOrder(orderBy), ent.WithAuditEntryFilter(where.Filter))
}

// Activity lists the viewer's own actions, and actions of others as the viewer or on the
// viewer's account.
func (r queryResolver) Activity(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.AuditEntryOrder, where *ent.AuditEntryWhereInput) (*ent.AuditEntryConnection, error) {
	me := viewer.From(ctx).User
	return r.Client.AuditEntry.Query().
		Where(auditentry.Or(auditentry.ActorID(me), auditentry.ActedAsID(me), auditentry.EntityID(me))).
		Paginate(ctx, after, first, before, last, ent.WithAuditEntryOrder(orderBy), ent.WithAuditEntryFilter(where.Filter))
}

func (r queryResolver) Retention(ctx context.Context) ([]*ent.Retention, error) {
	return r.Audit.Retentions(ctx)
}

func (r mutationResolver) SetRetention(ctx context.Context, input audit.SetRetentionInput) (*audit.RetentionPayload, error) {
	return r.Audit.SetRetention(ctx, input)
}

func (r auditEntryResolver) Actor(ctx context.Context, e *ent.AuditEntry) (*ent.User, error) {
	return loadedUser(ctx, e.ActorID)
}

func (r auditEntryResolver) ActedAs(ctx context.Context, e *ent.AuditEntry) (*ent.User, error) {
	return loadedUser(ctx, e.ActedAsID)
}

func loadedUser(ctx context.Context, id *uuid.UUID) (*ent.User, error) {
	if id == nil {
		return nil, nil
	}
	return loaders(ctx).users.Load(ctx, *id)
}

// loadUsers reads the users that the viewer can see.
func (r *Resolver) loadUsers(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.User, error) {
	q, err := r.Client.User.Query().Where(user.IDIn(ids...)).CollectFields(ctx, "User", "Node")
	if err != nil {
		return nil, err
	}
	all, err := q.All(ctx)
	m := map[uuid.UUID]*ent.User{}
	for _, u := range all {
		m[u.ID] = u
	}
	return m, err
}
