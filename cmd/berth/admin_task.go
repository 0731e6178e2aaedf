package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

func (a *app) taskCommand() *cobra.Command {
	return alias(group("task", "List and control background tasks, such as the purge of a user",
		a.taskList(), a.taskShow(), a.taskWait(),
		a.onTasks("cancel", "Cancel tasks; their finished steps stay", (*client.Client).CancelTask),
		alias(a.onTasks("retry", "Run failed or cancelled tasks again from where they were", (*client.Client).RetryTask), "again")), "tasks")
}

func (a *app) taskList() *cobra.Command {
	var f client.TaskFilter
	var status *string
	cmd := a.list("List the tasks that you can see, newest first", func(ctx context.Context, c *client.Client, _ []string) error {
		if status != nil {
			f.Status = *status
		}
		list, err := c.Tasks(ctx, f)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return a.taskTable(list...) })
	})
	cmd.Flags().StringVar(&f.Kind, "kind", "", "only of this kind")
	given(cmd, &status, "status", "only in this `status`: waiting, running, done, failed or cancelled",
		choice("waiting", "running", "done", "failed", "cancelled"))
	cmd.Flags().StringVar(&f.Subject, "subject", "", "only about the object with this id")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "how many at most; 0 = all")
	return cmd
}

func (a *app) taskTable(list ...client.Task) *output.Table {
	t := output.NewTable("TASK", "STATUS", "DONE", "AGE", "ID", "MESSAGE").Spare("AGE", "DONE")
	for _, one := range list {
		t.Row(one.Title, taskStatus(one), taskDone(one), output.Age(a.now(), one.CreatedAt), one.ID, one.Message)
	}
	return t
}

func taskStatus(t client.Task) output.Cell {
	return output.Cell{Text: t.Status, Color: map[string]output.Color{
		"done": output.Green, "failed": output.Red, "running": output.Yellow, "waiting": output.Yellow,
	}[t.Status]}
}

func taskDone(t client.Task) string {
	if t.Total == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", t.Done, t.Total)
}

func findTask(ctx context.Context, c *client.Client, ref string) (*client.Task, error) {
	if !isID(ref) {
		return nil, usagef("%q is not the id of a task; list them with: berth admin task ls", ref)
	}
	all, err := c.Tasks(ctx, client.TaskFilter{ID: ref, Limit: 1})
	return one(ctx, c, "task", ref, all, err, func(t client.Task) (id, owner string) { return t.ID, "" })
}

func (a *app) taskShow() *cobra.Command {
	return a.verb("show ID", "Show a task", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		t, err := findTask(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.print().Print(t, func() error {
			s := a.sheet()
			s.fact("Task", t.Title)
			s.fact("ID", t.ID)
			s.fact("Kind", sentence(t.Kind))
			s.fact("Status", t.Status)
			s.fact("Done", taskDone(*t))
			s.fact("Attempt", strconv.Itoa(t.Attempt))
			s.fact("Message", t.Message)
			if t.SubjectID != nil {
				s.fact("About", *t.SubjectID)
			}
			s.fact("Created", a.moment(&t.CreatedAt))
			s.fact("Started", a.moment(t.StartedAt))
			s.fact("Ended", a.moment(t.EndedAt))
			return nil
		})
	})
}

func (a *app) taskWait() *cobra.Command {
	cmd := a.verb("wait ID", "Wait until a task has ended", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		t, err := findTask(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.awaitTask(ctx, c, t)
	})
	cmd.Long = "Wait until a task has ended. The exit code is 0 when it succeeded, else 5."
	return cmd
}

// taskPoll is how often a task is looked at; they take seconds to minutes.
const taskPoll = time.Second

// awaitTask shows the task once it has ended.
func (a *app) awaitTask(ctx context.Context, c *client.Client, t *client.Task) error {
	t, err := a.untilEnded(ctx, c, t)
	if err != nil {
		return err
	}
	if err := a.table(t, func() *output.Table { return a.taskTable(*t) }); err != nil {
		return err
	}
	return taskFailure(t)
}

// taskFailure is the error of a task that has ended and is not done.
func taskFailure(t *client.Task) error {
	if t.Status == "done" {
		return nil
	}
	return fmt.Errorf("the task is %s: %s: %w", t.Status, t.Message, errdefs.ErrFailedPrecondition)
}

// untilEnded waits for a task.
func (a *app) untilEnded(ctx context.Context, c *client.Client, t *client.Task) (*client.Task, error) {
	line := a.statusLine(false)
	defer line.Clear()
	for t.Status == "waiting" || t.Status == "running" {
		line.Set(strings.TrimSpace(t.Title + ": " + t.Status + " " + taskDone(*t)))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(taskPoll):
		}
		next, err := findTask(ctx, c, t.ID)
		if err != nil {
			return nil, err
		}
		t = next
	}
	return t, nil
}

func (a *app) onTasks(name, short string, do func(*client.Client, context.Context, string) (*client.Task, error)) *cobra.Command {
	find := func(ctx context.Context, c *client.Client, ref string) (string, error) {
		return idOr(ref, func() (*client.Task, error) { return findTask(ctx, c, ref) }, func(t *client.Task) string { return t.ID })
	}
	return a.onEach(name+" ID", short, find, func(ctx context.Context, c *client.Client, id string) error {
		_, err := do(c, ctx, id)
		return err
	})
}
