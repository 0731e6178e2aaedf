// Package task has the commands about background tasks, and waits for a task on
// behalf of other commands.
package task

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth admin task".
func Command(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("task", "List and control background tasks, such as the purge of a user",
		listCommand(a), showCommand(a), waitCommand(a),
		onTasks(a, "cancel", "Cancel tasks; their finished steps stay", (*client.Client).CancelTask),
		cli.Alias(onTasks(a, "retry", "Run failed or cancelled tasks again from where they were", (*client.Client).RetryTask), "again")), "tasks")
}

func listCommand(a *cli.App) *cobra.Command {
	var f client.TaskFilter
	var status *client.Enum
	cmd := a.List("List the tasks that you can see, newest first", func(ctx context.Context, c *client.Client, _ []string) error {
		if status != nil {
			f.Status = *status
		}
		list, err := c.Tasks(ctx, f)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return Table(a, list...) })
	})
	cmd.Flags().StringVar(&f.Kind, "kind", "", "only of this kind")
	cli.OptionalFlag(cmd, &status, "status", "only in this `status`: waiting, running, done, failed or cancelled",
		cli.Choice("waiting", "running", "done", "failed", "cancelled"))
	cmd.Flags().StringVar(&f.Subject, "subject", "", "only about the object with this id")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "how many at most; 0 = all")
	return cmd
}

// Table returns the table that shows these tasks.
func Table(a *cli.App, list ...client.Task) *output.Table {
	t := output.NewTable("TASK", "STATUS", "DONE", "AGE", "ID", "MESSAGE").Spare("AGE", "DONE")
	for _, one := range list {
		t.Row(one.Title, taskStatus(one), taskDone(one), output.Age(a.Now(), one.CreatedAt), one.ID, one.Message)
	}
	return t
}

func taskStatus(t client.Task) output.Cell {
	return output.Cell{Text: t.Status.String(), Color: map[string]output.Color{
		"done": output.Green, "failed": output.Red, "running": output.Yellow, "waiting": output.Yellow,
	}[t.Status.String()]}
}

func taskDone(t client.Task) string {
	if t.Total == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", t.Done, t.Total)
}

func findTask(ctx context.Context, c *client.Client, ref string) (*client.Task, error) {
	if !cli.IsID(ref) {
		return nil, cli.Usagef("%q is not the id of a task; list them with: berth admin task ls", ref)
	}
	all, err := c.Tasks(ctx, client.TaskFilter{ID: ref, Limit: 1})
	return cli.One(ctx, c, "task", ref, all, err, func(t client.Task) (id, owner string) { return t.ID, "" })
}

func showCommand(a *cli.App) *cobra.Command {
	return a.Verb("show ID", "Show a task", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		t, err := findTask(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.Printer().Print(t, func() error {
			s := a.Sheet()
			s.Fact("Task", t.Title)
			s.Fact("ID", t.ID)
			s.Fact("Kind", cli.Sentence(t.Kind))
			s.Fact("Status", t.Status.String())
			s.Fact("Done", taskDone(*t))
			s.Fact("Attempt", strconv.Itoa(t.Attempt))
			s.Fact("Message", t.Message)
			if t.SubjectID != nil {
				s.Fact("About", *t.SubjectID)
			}
			s.Fact("Created", a.Moment(&t.CreatedAt))
			s.Fact("Started", a.Moment(t.StartedAt))
			s.Fact("Ended", a.Moment(t.EndedAt))
			return nil
		})
	})
}

func waitCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("wait ID", "Wait until a task has ended", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		t, err := findTask(ctx, c, args[0])
		if err != nil {
			return err
		}
		return Await(ctx, a, c, t)
	})
	cmd.Long = "Wait until a task has ended. The exit code is 0 when it succeeded, else 5."
	return cmd
}

// PollInterval is the time between two requests for the state of a task. Tasks take seconds to
// minutes.
const PollInterval = time.Second

// Await waits for a task and prints it.
func Await(ctx context.Context, a *cli.App, c *client.Client, t *client.Task) error {
	t, err := UntilEnded(ctx, a, c, t)
	if err != nil {
		return err
	}
	if err := a.Table(t, func() *output.Table { return Table(a, *t) }); err != nil {
		return err
	}
	return Failure(t)
}

// Failure returns the error of a task that has ended without success.
func Failure(t *client.Task) error {
	if t.Status == "DONE" {
		return nil
	}
	return fmt.Errorf("the task is %s: %s: %w", t.Status, t.Message, errdefs.ErrFailedPrecondition)
}

// UntilEnded waits until a task has ended.
func UntilEnded(ctx context.Context, a *cli.App, c *client.Client, t *client.Task) (*client.Task, error) {
	line := a.StatusLine(false)
	defer line.Clear()
	for t.Status == "WAITING" || t.Status == "SCHEDULED" || t.Status == "RUNNING" {
		line.Set(strings.TrimSpace(t.Title + ": " + t.Status.String() + " " + taskDone(*t)))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(PollInterval):
		}
		next, err := findTask(ctx, c, t.ID)
		if err != nil {
			return nil, err
		}
		t = next
	}
	return t, nil
}

func onTasks(a *cli.App, name, short string, do func(*client.Client, context.Context, string) (*client.Task, error)) *cobra.Command {
	find := func(ctx context.Context, c *client.Client, ref string) (string, error) {
		return cli.IDOr(ref, func() (*client.Task, error) { return findTask(ctx, c, ref) }, func(t *client.Task) string { return t.ID })
	}
	return a.OnEach(name+" ID", short, find, func(ctx context.Context, c *client.Client, id string) error {
		_, err := do(c, ctx, id)
		return err
	})
}
