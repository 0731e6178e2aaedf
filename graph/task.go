package graph

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/task"
)

func (r queryResolver) Tasks(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.TaskOrder, where *ent.TaskWhereInput) (*ent.TaskConnection, error) {
	return r.Client.Task.Query().Paginate(ctx, after, first, before, last, ent.WithTaskOrder(orderBy), ent.WithTaskFilter(where.Filter))
}

func (r mutationResolver) CancelTask(ctx context.Context, input task.CancelTaskInput) (*task.TaskPayload, error) {
	return r.Tasks.CancelTask(ctx, input)
}

func (r mutationResolver) RetryTask(ctx context.Context, input task.RetryTaskInput) (*task.TaskPayload, error) {
	return r.Tasks.RetryTask(ctx, input)
}

// TaskChanged sends each visible task that changes.
func (r subscriptionResolver) TaskChanged(ctx context.Context, id, subject *uuid.UUID) (<-chan *ent.Task, error) {
	if id != nil && subject != nil {
		return nil, problem.Invalid("subject", "name either a task or the subject of tasks, not both")
	}
	find := func(ctx context.Context, where ...predicate.Task) ([]*ent.Task, error) {
		q, err := r.Client.Task.Query().Where(where...).Order(enttask.ByCreatedAt(sql.OrderDesc())).Limit(maxFeed).CollectFields(ctx, "Task", "Node")
		if err != nil {
			return nil, err
		}
		if subject != nil {
			q.Where(enttask.SubjectID(*subject))
		}
		return q.All(ctx)
	}
	live := func(ctx context.Context) ([]*ent.Task, error) { return find(ctx, enttask.EndedAtIsNil()) }
	f := feed[*ent.Task]{
		topic: event.Task, id: id,
		first: func(context.Context) ([]*ent.Task, error) { return nil, nil },
		read: func(ctx context.Context, ids []uuid.UUID) ([]*ent.Task, error) {
			return find(ctx, enttask.IDIn(ids...))
		},
		missed: func(ctx context.Context) ([]*ent.Task, error) {
			return find(ctx, enttask.Or(enttask.EndedAtIsNil(), enttask.EndedAtGT(now().Add(-missedFor))))
		},
	}
	switch {
	case id != nil:
		f.missed = nil
		f.first = func(ctx context.Context) ([]*ent.Task, error) { return named(ctx, find, "task", enttask.ID(*id)) }
	case subject != nil:
		f.first = live
	}
	return follow(ctx, r.Resolver, f)
}
