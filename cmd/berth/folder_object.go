package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) folderImport() *cobra.Command {
	cmd := a.folderTransfer("import FOLDER[:DIR] STORAGE[:PATH]", "Import objects of an object storage into a folder",
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

func (a *app) folderExport() *cobra.Command {
	cmd := a.folderTransfer("export FOLDER[:PATH] STORAGE[:DIR]", "Export files of a folder to an object storage",
		func(ctx context.Context, c *client.Client, folder, storage string, in client.ImportFolderInput) (*client.Task, error) {
			in.Path, in.Directory = folder, storage
			return c.ExportFolder(ctx, as[client.ExportFolderInput](in))
		})
	cmd.Long = `Export a directory of a folder, or one file, to an object storage, and show the
progress. Links are not followed. An interrupt cancels the export; exported
objects stay, and the same command continues with the rest.`
	cmd.Example = "  berth folder export results:run-7 lake:results/run-7"
	return cmd
}

func (a *app) folderTransfer(use, short string, begin func(ctx context.Context, c *client.Client, folder, storage string, in client.ImportFolderInput) (*client.Task, error)) *cobra.Command {
	var existing string
	var detach bool
	cmd := &cobra.Command{
		Use: use, Short: short, Args: count(2, 2), ValidArgsFunction: a.completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, f, path, err := a.inFolder(ctx, args[0])
			if err != nil {
				return err
			}
			name, below := cutPlace(args[1])
			storage, err := findStorage(ctx, c, name)
			if err != nil {
				return err
			}
			t, err := begin(ctx, c, path, below, client.ImportFolderInput{Vfolder: f.ID, ObjectStorage: storage.ID, Existing: existing})
			if err != nil {
				return err
			}
			if detach {
				return a.table(t, func() *output.Table { return a.taskTable(*t) })
			}
			return a.awaitTransfer(ctx, c, t)
		},
	}
	parsed(cmd, &existing, "existing", "what happens to existing `files`: update (only changed ones), overwrite or fail (default: update)", choice("update", "overwrite", "fail"))
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait for its end; berth admin task shows how far it is")
	return cmd
}

// awaitTransfer shows how far an import or export is, and what came of it. An interrupt
// cancels it.
func (a *app) awaitTransfer(ctx context.Context, c *client.Client, t *client.Task) error {
	line := a.statusLine(false)
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
			return a.transferred(got)
		}
		line.Set(transferText(got))
		select {
		case <-ctx.Done():
		case <-time.After(taskPoll):
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

// transferred says what came of an import or export.
func (a *app) transferred(t *client.TransferTask) error {
	err := a.print().Print(t, func() error {
		o := t.ObjectTransfer
		for _, f := range o.Failures {
			a.note("%s: %s", f.Path, orNone(f.Error))
		}
		if more := o.Failed - int64(len(o.Failures)); more > 0 {
			a.note("… and %d more", more)
		}
		_, err := fmt.Fprintf(a.out, "%s: %s, %s; %d were there already, %d failed\n",
			t.Title, plural(int(o.Files-o.Left-o.Failed), "file"), output.Bytes(o.Bytes), o.Left, o.Failed)
		return err
	})
	return errors.Join(err, taskFailure(&t.Task))
}
