package image

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/admin/task"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func scanCommand(a *cli.App) *cobra.Command {
	var detach bool
	cmd := a.Verb("scan [REGISTRY]", "Register the tags of a registry; without a name, of all registries", cli.Args(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			list, err := c.Registries(ctx)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				one, err := findRegistry(ctx, c, args[0])
				if err != nil {
					return err
				}
				list = []client.Registry{*one}
			}
			if detach {
				return startScans(ctx, a, c, list)
			}
			return scanAll(ctx, a, c, list)
		})
	cmd.Long = `Start a task that reads the tags of a registry and registers them, and wait for
its end. A tag whose digest has not changed since the scan before costs one
request or none. The command prints the tags that could not be read.`
	cmd.Example = "  berth image scan hub\n  berth image scan hub --detach\n  berth image report hub --outcome failed"
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait for its end; berth admin task shows how far it is")
	return cmd
}

func startScans(ctx context.Context, a *cli.App, c *client.Client, list []client.Registry) error {
	tasks := []client.Task{}
	for _, r := range list {
		t, err := c.ScanRegistry(ctx, r.ID)
		if err != nil {
			return fmt.Errorf("scan %s: %w", r.Name, err)
		}
		tasks = append(tasks, *t)
	}
	return a.Table(tasks, func() *output.Table { return task.Table(a, tasks...) })
}

func scanAll(ctx context.Context, a *cli.App, c *client.Client, list []client.Registry) error {
	tasks, failed := []client.Task{}, []client.ScanResult{}
	for _, r := range list {
		t, err := c.ScanRegistry(ctx, r.ID)
		if err == nil {
			t, err = task.UntilEnded(ctx, a, c, t)
		}
		if err == nil {
			err = task.Failure(t)
		}
		if err != nil {
			return fmt.Errorf("scan %s: %w", r.Name, err)
		}
		tasks = append(tasks, *t)
		bad, err := c.ScanResults(ctx, r.ID, []client.Enum{"FAILED"})
		if err != nil {
			return err
		}
		failed = append(failed, bad...)
	}
	if len(failed) == 0 {
		return a.Table(tasks, func() *output.Table { return task.Table(a, tasks...) })
	}
	if err := a.Table(failed, func() *output.Table { return resultTable(failed...) }); err != nil {
		return err
	}
	return fmt.Errorf("tags that could not be registered: %d: %w", len(failed), errdefs.ErrFailedPrecondition)
}

func reportCommand(a *cli.App) *cobra.Command {
	var outcomes []client.Enum
	cmd := a.Verb("report REGISTRY", "List what the latest scan of a registry found at each tag", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := findRegistry(ctx, c, args[0])
			if err != nil {
				return err
			}
			list, err := c.ScanResults(ctx, r.ID, outcomes)
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table { return resultTable(list...) })
		})
	cmd.Example = "  berth image report hub --outcome failed,moved"
	cli.ParsedFlag(cmd, &outcomes, "outcome", "only tags with these `outcomes`: new, moved, unchanged, skipped, failed, gone",
		cli.Choices("new", "moved", "unchanged", "skipped", "failed", "gone"))
	return cmd
}

func resultTable(list ...client.ScanResult) *output.Table {
	t := output.NewTable("TAG", "OUTCOME", "MESSAGE", "DIGEST").Spare("DIGEST")
	for _, r := range list {
		color := map[string]output.Color{"failed": output.Red, "moved": output.Yellow, "new": output.Green}[r.Outcome.String()]
		t.Row(r.Name, output.Cell{Text: r.Outcome.String(), Color: color}, r.Message, r.Digest)
	}
	return t
}
