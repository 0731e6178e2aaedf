package graph

import (
	"context"
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/resourcegroup"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler"
	"github.com/berthhq/berth/manager/session"
)

func (r mutationResolver) UpdatePendingSession(ctx context.Context, input session.UpdatePendingSessionInput) (*session.SessionPayload, error) {
	return r.Resolver.Sessions.UpdatePendingSession(ctx, input)
}

func (r queryResolver) DryRun(ctx context.Context, input session.CreateSessionInput) (*scheduler.DryRun, error) {
	return r.Advisor.DryRun(ctx, input)
}

func (r dryRunResolver) ResourceGroup(ctx context.Context, d *scheduler.DryRun) (*ent.ResourceGroup, error) {
	if d.ResourceGroup == nil {
		return nil, nil
	}
	return loaders(ctx).accessGroups.Load(ctx, *d.ResourceGroup)
}

func (r dryRunResolver) Agents(ctx context.Context, d *scheduler.DryRun) ([]*ent.Agent, error) {
	if len(d.Agents) == 0 {
		return []*ent.Agent{}, nil
	}
	q, err := r.Client.Agent.Query().Where(agent.IDIn(d.Agents...)).Order(agent.ByName()).CollectFields(ctx, "Agent", "Node")
	if err != nil {
		return nil, err
	}
	return q.All(ctx)
}

func (r dryRunResolver) Pending(_ context.Context, d *scheduler.DryRun) (*model.PendingReport, error) {
	if d.Pending == nil {
		return nil, nil
	}
	return &model.PendingReport{Pending: d.Pending, Trial: d}, nil
}

func (r sessionResolver) Pending(_ context.Context, s *ent.Session) (*model.PendingReport, error) {
	if s.Pending == nil {
		return nil, nil
	}
	return &model.PendingReport{Pending: s.Pending, Session: s.ID}, nil
}

// Position is the position in the next pass. After the session has left the queue, it is the
// last one.
func (r pendingReportResolver) Position(ctx context.Context, p *model.PendingReport) (int, error) {
	if p.Trial != nil {
		return len(p.Trial.Ahead) + 1, nil
	}
	place, err := loaders(ctx).places.Load(ctx, p.Session)
	if place == nil {
		return p.Pending.Position, err
	}
	return place.Position, err
}

func (r pendingReportResolver) Ahead(ctx context.Context, p *model.PendingReport, first *int) ([]*model.QueueEntry, error) {
	var ahead []*scheduler.Place
	if p.Trial != nil {
		ahead = p.Trial.Ahead
	} else if place, err := loaders(ctx).places.Load(ctx, p.Session); err != nil {
		return nil, err
	} else if place != nil {
		ahead = place.Ahead()
	}
	return r.entries(ctx, ahead[:min(deref(first), len(ahead))])
}

func (r pendingReportResolver) Suggestions(ctx context.Context, p *model.PendingReport) ([]*scheduler.Suggestion, error) {
	var list []*scheduler.Suggestion
	var err error
	if p.Trial != nil {
		list, err = p.Trial.Suggestions(ctx)
	} else {
		list, err = loaders(ctx).suggestions.Load(ctx, p.Session)
	}
	if list == nil {
		list = []*scheduler.Suggestion{}
	}
	return list, err
}

func (r resourceGroupResolver) Queue(ctx context.Context, g *ent.ResourceGroup, first *int, after *string) (*model.Queue, error) {
	return r.queue(ctx, g.ID, deref(first), deref(after))
}

// queue returns one page of the queue of a visible group.
func (r *Resolver) queue(ctx context.Context, group uuid.UUID, first int, after string) (*model.Queue, error) {
	all, err := r.Advisor.Queue(ctx, group)
	if err != nil {
		return nil, err
	}
	from, err := afterPosition(after)
	if err != nil {
		return nil, err
	}
	page := all[min(from, len(all)):]
	page = page[:min(first, len(page))]
	out := &model.Queue{TotalCount: len(all)}
	if end := from + len(page); end < len(all) {
		cursor := base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(end)))
		out.EndCursor = &cursor
	}
	out.Entries, err = r.entries(ctx, page)
	return out, err
}

// afterPosition reads a cursor, which is a position. While the queue changes, a client can see
// an entry twice, or miss one that moved forward.
func afterPosition(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if n, err2 := strconv.Atoi(string(text)); err == nil && err2 == nil && n >= 0 {
		return n, nil
	}
	return 0, problem.Invalid("after", "is not a valid cursor for this list")
}

// stages explains, without details, why a session waits that the viewer cannot read.
var stages = map[string]string{
	report.StageGroup:  "The resource group of the session is deleted or not active.",
	report.StageHeld:   "It waits for its start time, or for other sessions.",
	report.StageLimits: "It waits because a limit of a policy is reached.",
	report.StageRoom:   "It waits for free capacity.",
	report.StageOrder:  "It waits for its turn.",
}

const startsNext = "It starts at the next pass."

// entries converts positions in a queue to the fields that the viewer can see.
func (r *Resolver) entries(ctx context.Context, places []*scheduler.Place) ([]*model.QueueEntry, error) {
	ids := make([]uuid.UUID, len(places))
	for i, p := range places {
		ids[i] = p.Session
	}
	seen, errs := loaders(ctx).seen.LoadAll(ctx, ids)
	if errs != nil {
		return nil, errs
	}
	user := viewer.From(ctx).User
	out := make([]*model.QueueEntry, len(places))
	for i, p := range places {
		e := &model.QueueEntry{Position: p.Position, Priority: p.Priority, WaitingSince: p.Since, Why: startsNext}
		if w := p.Pending; w != nil {
			e.Stage, e.Why, e.Holds, e.EstimatedStart = w.Stage, stages[w.Stage], w.Holds, w.EstimatedStart
		}
		if s := seen[i]; s != nil {
			e.ID, e.Mine = s.ID, s.OwnerID == user
			if p.Pending != nil {
				e.Why, e.Order = p.Pending.Summary, p.Pending.Order
			}
		}
		out[i] = e
	}
	return out, nil
}

func (r queueEntryResolver) Session(ctx context.Context, e *model.QueueEntry) (*ent.Session, error) {
	if e.ID == uuid.Nil {
		return nil, nil
	}
	return loaders(ctx).queued.Load(ctx, e.ID)
}

// loadSeen returns the owners of the sessions that the viewer can see.
func (r *Resolver) loadSeen(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.Session, error) {
	all, err := r.Client.Session.Query().Where(entsession.IDIn(ids...)).Select(entsession.FieldID, entsession.FieldOwnerID).All(ctx)
	return byID(all, func(s *ent.Session) uuid.UUID { return s.ID }), err
}

func (r *Resolver) loadQueued(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.Session, error) {
	q, err := r.Client.Session.Query().Where(entsession.IDIn(ids...)).CollectFields(ctx, "Session", "Node")
	if err != nil {
		return nil, err
	}
	all, err := q.All(ctx)
	return byID(all, func(s *ent.Session) uuid.UUID { return s.ID }), err
}

// QueueChanged sends the first page of a queue, and sends it again when it changes.
func (r subscriptionResolver) QueueChanged(ctx context.Context, group uuid.UUID, first *int) (<-chan *model.Queue, error) {
	sees, err := r.Client.ResourceGroup.Query().Where(resourcegroup.ID(group)).Exist(ctx)
	if err != nil {
		return nil, fmt.Errorf("find resource group: %w", err)
	}
	if !sees {
		return nil, problem.NotFound("resource group").WithField("resourceGroup")
	}
	news := r.Bus.Gather(ctx, []event.Topic{event.Session, event.Pending})
	page, err := r.queue(fresh(ctx, r.Resolver), group, deref(first), "")
	if err != nil {
		return nil, err
	}
	out := make(chan *model.Queue)
	go func() {
		defer close(out)
		for sent := (*model.Queue)(nil); ctx.Err() == nil; {
			if !reflect.DeepEqual(sent, page) {
				select {
				case <-ctx.Done():
					return
				case out <- page:
					sent = page
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-news.Wake():
				news.Take()
			}
			page = r.queueSince(ctx, group, deref(first), time.Now(), sent)
		}
	}()
	return out, nil
}

// queueSince returns a queue as of a moment or later. It retries until it can; when ctx ends,
// it returns the last known state.
func (r *Resolver) queueSince(ctx context.Context, group uuid.UUID, first int, since time.Time, was *model.Queue) *model.Queue {
	for r.Advisor.Await(ctx, since) {
		page, err := r.queue(fresh(ctx, r), group, first, "")
		if err == nil {
			return page
		}
		if ctx.Err() == nil {
			r.Logger.Warn("read a queue for a subscription", "group", group, "error", err)
		}
		since = time.Now()
	}
	return was
}
