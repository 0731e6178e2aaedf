package client

import (
	"context"
)

// TaskFilter selects tasks; zero values select all.
type TaskFilter struct {
	ID, Kind, Subject string
	Status            Enum
	Limit             int
}

// Tasks lists the tasks that the viewer can see, newest first.
func (c *Client) Tasks(ctx context.Context, f TaskFilter) ([]Task, error) {
	where := Where{}
	put(where, "id", f.ID)
	put(where, "kind", f.Kind)
	put(where, "status", f.Status)
	put(where, "subjectID", f.Subject)
	return collect(f.Limit, func(first *int, after string) (*queryTasksTasksTaskConnection, error) {
		out, err := queryTasks(ctx, c, first, after, where)
		return &out.Tasks, err
	})
}

// CancelTask ends a task; its finished work stays.
func (c *Client) CancelTask(ctx context.Context, id string) (*Task, error) {
	out, err := cancelTask(ctx, c, CancelTaskInput{ID: id})
	return &out.Payload.Task, err
}

// RetryTask continues a failed or cancelled task.
func (c *Client) RetryTask(ctx context.Context, id string) (*Task, error) {
	out, err := retryTask(ctx, c, RetryTaskInput{ID: id})
	return &out.Payload.Task, err
}
