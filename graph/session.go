package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"entgo.io/ent/dialect/sql"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/graph/server"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/session/logs"
	"github.com/berthhq/berth/manager/stats"
)

func (r queryResolver) Sessions(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.SessionOrder, where *ent.SessionWhereInput) (*ent.SessionConnection, error) {
	return r.Client.Session.Query().Paginate(ctx, after, first, before, last, ent.WithSessionOrder(orderBy), ent.WithSessionFilter(where.Filter))
}

func (r queryResolver) Usage(ctx context.Context, where *stats.UsageWhereInput) ([]*stats.UsageEntry, error) {
	entries, err := stats.Usage(ctx, r.Client, where)
	return pointers(entries), err
}

// UsageReport sums the usage that the viewer can see by the dimensions of the input.
func (r queryResolver) UsageReport(ctx context.Context, input stats.UsageReportInput) ([]*stats.UsageRow, error) {
	rows, err := stats.Report(ctx, r.Client, input)
	return pointers(rows), err
}

func (r sessionResolver) Usage(ctx context.Context, s *ent.Session) ([]*stats.UsageEntry, error) {
	entries, err := loaders(ctx).usage.Load(ctx, s.ID)
	return pointers(entries), err
}

// Environment shows the values to viewers who can open a terminal in the session, where they
// could read them anyway.
func (r sessionResolver) Environment(ctx context.Context, s *ent.Session) (map[string]string, error) {
	row := s
	if !showsEnvironment(s) {
		var err error
		if row, err = loaders(ctx).environments.Load(ctx, s.ID); err != nil || row == nil {
			return map[string]string{}, err
		}
	}
	all, err := r.Sessions.Environment(row)
	if err != nil {
		return nil, err
	}
	if e, on, _ := permit.Of(row); !viewer.From(ctx).May(access.Enter, e, on) {
		for name := range all {
			all[name] = ""
		}
	}
	return all, nil
}

// showsEnvironment reports whether the loaded columns suffice for Environment: there are no
// variables, or everything that decides about the values is loaded.
func showsEnvironment(s *ent.Session) bool {
	if s.Environment != nil && len(s.Environment) == 0 {
		return true
	}
	return len(s.SecretsSealed) > 0 && s.OwnerID != uuid.Nil && s.ProjectID != uuid.Nil && s.DomainID != uuid.Nil
}

// loadEnvironments reads the columns that Environment needs, of sessions that the viewer can
// see.
func (r *Resolver) loadEnvironments(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.Session, error) {
	rows, err := r.Client.Session.Query().Where(entsession.IDIn(ids...)).
		Select(entsession.FieldOwnerID, entsession.FieldProjectID, entsession.FieldDomainID, entsession.FieldEnvironment, entsession.FieldSecretsSealed).
		All(viewer.SystemContext(ctx))
	m := make(map[uuid.UUID]*ent.Session, len(rows))
	for _, row := range rows {
		m[row.ID] = row
	}
	return m, err
}

// Request is null for viewers who cannot enter the session, where they could read it.
func (r sessionResolver) Request(ctx context.Context, s *ent.Session) (*session.CreateSessionInput, error) {
	return loaders(ctx).requests.Load(ctx, s.ID)
}

// Tag matches sessions with a tag.
func (r sessionWhereInputResolver) Tag(_ context.Context, where *ent.SessionWhereInput, tag *string) error {
	if tag != nil {
		where.AddPredicates(tagged(*tag))
	}
	return nil
}

// tagged uses the index of tags, which has only sessions with any.
func tagged(tag string) predicate.Session {
	return func(s *sql.Selector) {
		list, _ := json.Marshal([]string{tag}) // of a list of strings, always possible
		s.Where(sql.P(func(b *sql.Builder) {
			column := s.C(entsession.FieldTags)
			b.WriteString(column).WriteString(" <> '[]' AND ").WriteString(column).WriteString(" @> ").Arg(string(list)).WriteString("::jsonb")
		}))
	}
}

// History is in chronological order. Ids sort by time, and are always loaded.
func (r sessionResolver) History(ctx context.Context, s *ent.Session) ([]*ent.SessionEvent, error) {
	events, err := s.History(ctx)
	slices.SortFunc(events, func(a, b *ent.SessionEvent) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return events, err
}

// Stats returns the latest samples of a live kernel, and the last ones of an ended kernel.
func (r kernelResolver) Stats(ctx context.Context, k *ent.Kernel) (*model.KernelStats, error) {
	out := &model.KernelStats{KernelID: k.ID}
	if k.LastStats != nil {
		out.At, out.Metrics = &k.LastStats.At, k.LastStats.Metrics
		return out, nil
	}
	st, err := loaders(ctx).stats.Load(ctx, k.ID)
	if !st.At.IsZero() {
		out.At, out.Metrics = &st.At, st.Metrics
	}
	return out, err
}

func (r mutationResolver) CreateSession(ctx context.Context, input session.CreateSessionInput) (*session.SessionPayload, error) {
	return r.Resolver.Sessions.CreateSession(ctx, input)
}

func (r mutationResolver) TerminateSession(ctx context.Context, input session.TerminateSessionInput) (*session.SessionPayload, error) {
	return r.Resolver.Sessions.TerminateSession(ctx, input)
}

func (r mutationResolver) RenameSession(ctx context.Context, input session.RenameSessionInput) (*session.SessionPayload, error) {
	return r.Resolver.Sessions.RenameSession(ctx, input)
}

func (r mutationResolver) SetSessionTags(ctx context.Context, input session.SetSessionTagsInput) (*session.SessionPayload, error) {
	return r.Resolver.Sessions.SetSessionTags(ctx, input)
}

func (r mutationResolver) RestartSession(ctx context.Context, input session.RestartSessionInput) (*session.SessionPayload, error) {
	return r.Resolver.Sessions.RestartSession(ctx, input)
}

// SessionChanged sends the current state if a session is given, then each change.
func (r subscriptionResolver) SessionChanged(ctx context.Context, id *uuid.UUID) (<-chan *ent.Session, error) {
	find := func(ctx context.Context, where ...predicate.Session) ([]*ent.Session, error) {
		q, err := r.Client.Session.Query().Where(where...).Order(entsession.ByCreatedAt(sql.OrderDesc())).Limit(maxFeed).
			CollectFields(ctx, "Session", "Node")
		if err != nil {
			return nil, err
		}
		return q.All(ctx)
	}
	f := feed[*ent.Session]{
		topic: event.Session, id: id,
		first: func(context.Context) ([]*ent.Session, error) { return nil, nil },
		read: func(ctx context.Context, ids []uuid.UUID) ([]*ent.Session, error) {
			return find(ctx, entsession.IDIn(ids...))
		},
		missed: func(ctx context.Context) ([]*ent.Session, error) {
			return find(ctx, entsession.Or(entsession.TerminatedAtIsNil(), entsession.TerminatedAtGT(now().Add(-missedFor))))
		},
	}
	if id != nil {
		f.missed = nil
		f.first = func(ctx context.Context) ([]*ent.Session, error) {
			return named(ctx, find, "session", entsession.ID(*id))
		}
	}
	return follow(ctx, r.Resolver, f)
}

// KernelLogs forwards a kernel's log from its agent.
func (r subscriptionResolver) KernelLogs(ctx context.Context, kernel uuid.UUID, follow *bool, offset *int64, tailLines *int) (<-chan *model.LogChunk, error) {
	opt := logs.Options{Follow: follow == nil || *follow}
	if offset != nil {
		opt.Offset = *offset
	}
	if tailLines != nil {
		opt.TailLines = int64(*tailLines)
	}
	log, err := r.Sessions.Logs(ctx, kernel, opt)
	if err != nil {
		return nil, err
	}
	out := make(chan *model.LogChunk)
	go func() {
		defer close(out)
		defer log.Close()
		for {
			text, from, to, err := log.Next()
			if err != nil {
				if ctx.Err() == nil && !logs.IsEnd(err) {
					// Without this, the client would take the error for the end of the log.
					tellEnd(ctx, server.Present(ctx, r.Logger, err))
				}
				return
			}
			select {
			case <-ctx.Done():
				return
			case out <- &model.LogChunk{Text: text, Offset: from, NextOffset: to}:
			}
		}
	}()
	return out, nil
}

// tellEnd ends a subscription with err. Only WebSockets can transmit it; gqlgen panics on
// other transports, whose clients see the end of the connection.
func tellEnd(ctx context.Context, err *gqlerror.Error) {
	defer func() { _ = recover() }()
	transport.AddSubscriptionError(ctx, err)
}

// KernelStats forwards the samples of a session's kernels as they arrive.
func (r subscriptionResolver) KernelStats(ctx context.Context, id uuid.UUID) (<-chan *model.KernelStats, error) {
	s, err := r.Client.Session.Get(ctx, id)
	if ent.IsNotFound(err) {
		return nil, problem.NotFound("session").WithField("session")
	}
	if err != nil {
		return nil, err
	}
	kernels, err := s.QueryKernels().IDs(ctx)
	if err != nil {
		return nil, err
	}
	samples := r.Resolver.Stats.Follow(ctx, kernels)
	out := make(chan *model.KernelStats)
	go func() {
		defer close(out)
		for st := range samples {
			select {
			case <-ctx.Done():
				return
			case out <- &model.KernelStats{KernelID: st.ID, At: &st.At, Metrics: st.Metrics}:
			}
		}
	}()
	return out, nil
}
