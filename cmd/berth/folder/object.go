package folder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/admin/task"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/objectstorage"
	"github.com/berthhq/berth/cmd/berth/output"
)

func importCommand(a *cli.App) *cobra.Command {
	cmd := transferCommand(a, "import FOLDER[:DIR] STORAGE[:PATH]", "Import objects of an object storage into a folder",
		func(ctx context.Context, c *client.Client, folder, storage string, in client.ImportFolderInput) (*client.Task, error) {
			in.Directory, in.Path = folder, storage
			return c.ImportFolder(ctx, in)
		})
	cmd.Long = `Import the objects below a path of an object storage, or one object, into a
folder, and show the progress. An interrupt cancels the import; imported files
stay, and the same command continues with the rest.`
	cmd.Example = "  berth folder import data lake:datasets/2026\n  berth folder import data:raw lake --existing fail --detach"
	return cmd
}

func exportCommand(a *cli.App) *cobra.Command {
	cmd := transferCommand(a, "export FOLDER[:PATH] STORAGE[:DIR]", "Export files of a folder to an object storage",
		func(ctx context.Context, c *client.Client, folder, storage string, in client.ImportFolderInput) (*client.Task, error) {
			in.Path, in.Directory = folder, storage
			return c.ExportFolder(ctx, cli.Convert[client.ExportFolderInput](in))
		})
	cmd.Long = `Export a directory of a folder, or one file, to an object storage, and show the
progress. Links are not followed. An interrupt cancels the export; exported
objects stay, and the same command continues with the rest.`
	cmd.Example = "  berth folder export results:run-7 lake:results/run-7"
	return cmd
}

func transferCommand(a *cli.App, use, short string, begin func(ctx context.Context, c *client.Client, folder, storage string, in client.ImportFolderInput) (*client.Task, error)) *cobra.Command {
	var existing client.Enum
	var detach bool
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cli.Args(2, 2), ValidArgsFunction: a.CompleteFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, f, path, err := a.FindPlace(ctx, args[0])
			if err != nil {
				return err
			}
			name, below := objectstorage.CutPlace(args[1])
			storage, err := objectstorage.Find(ctx, c, name)
			if err != nil {
				return err
			}
			t, err := begin(ctx, c, path, below, client.ImportFolderInput{Vfolder: f.ID, ObjectStorage: storage.ID, Existing: existing})
			if err != nil {
				return err
			}
			if detach {
				return a.Table(t, func() *output.Table { return task.Table(a, *t) })
			}
			return awaitTransfer(ctx, a, c, t)
		},
	}
	cli.ParsedFlag(cmd, &existing, "existing", "what happens to existing `files`: update (only changed ones), overwrite or fail (default: update)", cli.Choice("update", "overwrite", "fail"))
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait for its end; berth admin task shows how far it is")
	return cmd
}

// awaitTransfer shows the progress of an import or export and its result. An interrupt cancels it.
func awaitTransfer(ctx context.Context, a *cli.App, c *client.Client, t *client.Task) error {
	line := a.StatusLine(false)
	defer line.Clear()
	for {
		got, err := c.TransferTask(ctx, t.ID)
		if ctx.Err() != nil {
			_, failed := c.CancelTask(context.WithoutCancel(ctx), t.ID)
			return errors.Join(ctx.Err(), failed)
		}
		if err != nil {
			return err
		}
		if got.EndedAt != nil {
			line.Clear()
			return transferred(a, got)
		}
		line.Set(transferText(got))
		select {
		case <-ctx.Done():
		case <-time.After(task.PollInterval):
		}
	}
}

func transferText(t *client.TransferTask) string {
	o := t.ObjectTransfer
	text := fmt.Sprintf("%s: %s, %s of %s, %d of %d files", t.Title, t.Status, output.Bytes(t.Done), output.Bytes(o.BytesTotal), o.Files, o.FilesTotal)
	if t.Message != "" {
		text += ", waits for " + t.Message
	}
	return text
}

// transferred describes the result of an import or export.
func transferred(a *cli.App, t *client.TransferTask) error {
	err := a.Printer().Print(t, func() error {
		o := t.ObjectTransfer
		for _, f := range o.Failures {
			a.Note("%s: %s", f.Path, cli.OrNone(f.Error))
		}
		if more := o.Failed - int64(len(o.Failures)); more > 0 {
			a.Note("… and %d more", more)
		}
		_, err := fmt.Fprintf(a.Out, "%s: %s, %s; %d were there already, %d failed\n",
			t.Title, cli.Plural(int(o.Files-o.Left-o.Failed), "file"), output.Bytes(o.Bytes), o.Left, o.Failed)
		return err
	})
	return errors.Join(err, task.Failure(&t.Task))
}
