package graph

import (
	"context"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionarray"
	"github.com/berthhq/berth/manager/session"
)

func (r queryResolver) SessionArrays(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.SessionArrayOrder, where *ent.SessionArrayWhereInput) (*ent.SessionArrayConnection, error) {
	return r.Client.SessionArray.Query().Paginate(ctx, after, first, before, last, ent.WithSessionArrayOrder(orderBy), ent.WithSessionArrayFilter(where.Filter))
}

// Counts are of the members that the viewer can see: all, because they belong to the owner of
// the array.
func (r sessionArrayResolver) Counts(ctx context.Context, a *ent.SessionArray) (*session.ArrayCounts, error) {
	counts, err := loaders(ctx).arrays.Load(ctx, a.ID)
	return &counts, err
}

// Live matches arrays with a member that has not ended, or the others.
func (r sessionArrayWhereResolver) Live(_ context.Context, where *ent.SessionArrayWhereInput, live *bool) error {
	if live == nil {
		return nil
	}
	some := withMember(entsession.TerminatedAtIsNil())
	if !*live {
		some = sessionarray.Not(some)
	}
	where.AddPredicates(some)
	return nil
}

// Tag matches arrays with a member with a tag.
func (r sessionArrayWhereResolver) Tag(_ context.Context, where *ent.SessionArrayWhereInput, tag *string) error {
	if tag != nil {
		where.AddPredicates(withMember(tagged(*tag)))
	}
	return nil
}

// withMember matches arrays with a member that matches.
func withMember(which predicate.Session) predicate.SessionArray {
	return func(s *sql.Selector) {
		sessions := sql.Table(entsession.Table)
		member := sql.Select(sessions.C(entsession.FieldArrayID)).From(sessions).Where(sql.NotNull(sessions.C(entsession.FieldArrayID)))
		which(member)
		s.Where(sql.In(s.C(sessionarray.FieldID), member))
	}
}

func (r mutationResolver) CreateSessionArray(ctx context.Context, input session.CreateSessionArrayInput) (*session.SessionArrayPayload, error) {
	return r.Resolver.Sessions.CreateSessionArray(ctx, input)
}

func (r mutationResolver) CancelSessionArray(ctx context.Context, input session.CancelSessionArrayInput) (*session.SessionArrayPayload, error) {
	return r.Resolver.Sessions.CancelSessionArray(ctx, input)
}

func (r mutationResolver) RetrySessionArray(ctx context.Context, input session.RetrySessionArrayInput) (*session.SessionArrayPayload, error) {
	return r.Resolver.Sessions.RetrySessionArray(ctx, input)
}
