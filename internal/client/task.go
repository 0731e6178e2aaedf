package client

import (
	"context"
	"time"
)

// Task is work that continues after the request that asked for it.
type Task struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	Title     string     `json:"title"`
	Status    string     `json:"status"`
	Done      int64      `json:"done"`
	Total     int64      `json:"total"`
	Message   string     `json:"message"`
	Attempt   int        `json:"attempt"`
	SubjectID *string    `json:"subjectID"`
	CreatedAt time.Time  `json:"createdAt"`
	StartedAt *time.Time `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"`
}

const taskFields = `fragment taskFields on Task {
  id kind title status done total message attempt subjectID createdAt startedAt endedAt
}`

// TaskFilter narrows a list of tasks; zero values do not.
type TaskFilter struct {
	ID, Kind, Status, Subject string
	Limit                     int
}

var listTasks = define[struct {
	Tasks connection[Task] `json:"tasks"`
}](`query Tasks($first: Int, $after: Cursor, $where: TaskWhereInput) {
  tasks(first: $first, after: $after, where: $where, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
    edges { node { ...taskFields } } pageInfo { hasNextPage endCursor }
  }
}`, taskFields)

// Tasks lists tasks in sight, newest first.
func (c *Client) Tasks(ctx context.Context, f TaskFilter) ([]Task, error) {
	where := vars{}
	put(where, "id", f.ID)
	put(where, "kind", f.Kind)
	put(where, "status", f.Status)
	put(where, "subjectID", f.Subject)
	return collect(f.Limit, vars{"where": where}, func(v vars) (connection[Task], error) {
		out, err := listTasks.run(ctx, c, v)
		return out.Tasks, err
	})
}

type taskPayload struct {
	Task Task `json:"task"`
}

var cancelTask = define[payload[taskPayload]](`mutation CancelTask($input: CancelTaskInput!) {
  payload: cancelTask(input: $input) { task { ...taskFields } }
}`, taskFields)

// CancelTask ends a task; what it has done stays.
func (c *Client) CancelTask(ctx context.Context, id string) (*Task, error) {
	out, err := change(ctx, c, cancelTask, idOf{id})
	return &out.Task, err
}

var retryTask = define[payload[taskPayload]](`mutation RetryTask($input: RetryTaskInput!) {
  payload: retryTask(input: $input) { task { ...taskFields } }
}`, taskFields)

// RetryTask runs a failed or cancelled task again from where it was.
func (c *Client) RetryTask(ctx context.Context, id string) (*Task, error) {
	out, err := change(ctx, c, retryTask, idOf{id})
	return &out.Task, err
}
