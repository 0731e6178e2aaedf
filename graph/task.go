package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
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
