package folder

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/admin/task"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func trashCommand(a *cli.App) *cobra.Command {
	return cli.Group("trash", "List, restore or permanently delete folders in the trash",
		trashList(a), trashRestore(a), trashEmpty(a))
}

// findTrashed finds a folder in the trash.
func findTrashed(ctx context.Context, c *client.Client, ref string) (*client.Folder, error) {
	filter := client.FolderFilter{Name: ref, Trash: true}
	if cli.IsID(ref) {
		filter = client.FolderFilter{ID: ref, Trash: true}
	}
	all, err := c.Folders(ctx, filter)
	return cli.One(ctx, c, "folder in the trash", ref, all, err, func(f client.Folder) (id, owner string) { return f.ID, "" })
}

func trashList(a *cli.App) *cobra.Command {
	return a.List("List folders in the trash", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Folders(ctx, client.FolderFilter{Trash: true})
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table {
			t := output.NewTable("NAME", "OWNER", "DELETED", "ID")
			for _, f := range list {
				deleted := ""
				if f.DeletedAt != nil {
					deleted = output.Age(a.Now(), *f.DeletedAt)
				}
				t.Row(f.Name, cli.HolderText(nil, f.Project, f.Owner, "-"), deleted, f.ID)
			}
			return t
		})
	})
}

func trashRestore(a *cli.App) *cobra.Command {
	var name string
	cmd := a.Verb("restore FOLDER", "Restore a folder from the trash", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		f, err := findTrashed(ctx, c, args[0])
		if err != nil {
			return err
		}
		if f, err = c.RestoreFolder(ctx, f.ID, name); err != nil {
			return err
		}
		return folderDone(a, f)
	})
	cmd.Flags().StringVar(&name, "name", "", "under another name, when the old one is taken")
	return cmd
}

func trashEmpty(a *cli.App) *cobra.Command {
	var project string
	var yes bool
	cmd := a.Verb("empty", "Permanently delete all folders in your trash, or in a project's", cli.Args(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		whose, id := "trash", ""
		if project != "" {
			var err error
			if id, err = cli.FindProjectID(ctx, c, project); err != nil {
				return err
			}
			whose = project
		}
		if err := a.Confirm(ctx, "trash", whose, yes); err != nil {
			return err
		}
		n, err := c.EmptyTrash(ctx, id)
		if err != nil {
			return err
		}
		return a.Printer().Print(map[string]int{"count": n}, func() error {
			_, err := fmt.Fprintln(a.Out, cli.Plural(n, "folder"))
			return err
		})
	})
	cmd.Flags().StringVar(&project, "project", "", "the trash of a project")
	cli.YesFlag(cmd, &yes)
	return cmd
}

func deleteCommand(a *cli.App) *cobra.Command {
	var yes bool
	cmd := a.Verb("delete FOLDER", "Permanently delete a folder and all its data, also in the trash", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		f, err := findTrashed(ctx, c, args[0])
		fresh := errdefs.IsNotFound(err)
		if fresh {
			f, err = cli.FindFolder(ctx, c, args[0])
		}
		if err != nil {
			return err
		}
		if err := a.Confirm(ctx, "folder", f.Name, yes); err != nil {
			return err
		}
		if fresh {
			if _, err := c.TrashFolder(ctx, f.ID); err != nil {
				return err
			}
		}
		work, err := c.DeleteFolder(ctx, f.ID)
		if err != nil {
			return err
		}
		return task.Await(ctx, a, c, &work.Task)
	})
	cmd.Long = `Delete a folder and all its data permanently, also from the trash. The deletion
continues if berth is interrupted.`
	cli.YesFlag(cmd, &yes)
	return cmd
}

func cloneCommand(a *cli.App) *cobra.Command {
	var flags newFolder
	cmd := a.Verb("clone FOLDER NAME", "Copy a folder", cli.Args(2, 2), func(ctx context.Context, c *client.Client, args []string) (err error) {
		f, err := cli.FindFolder(ctx, c, args[0])
		if err != nil {
			return err
		}
		copied, err := flags.input(ctx, c, args[1])
		if err != nil {
			return err
		}
		in := cli.Convert[client.CloneVfolderInput](copied)
		in.ID = f.ID
		work, err := c.CloneFolder(ctx, in)
		if err != nil {
			return err
		}
		return orCancel(ctx, a, c, &work.Task)
	})
	cmd.Long = "Copy a folder. An interrupt cancels it and removes the copy."
	cmd.Example = "  berth folder clone weights weights-2 --usage-mode model"
	cmd.ValidArgsFunction = a.CompleteFolder
	flags.add(cmd, "that of the original", "that of the original", "make the copy the project's folder")
	return cmd
}

// orCancel waits for a task, and cancels it on an interrupt.
func orCancel(ctx context.Context, a *cli.App, c *client.Client, t *client.Task) error {
	err := task.Await(ctx, a, c, t)
	if ctx.Err() == nil {
		return err
	}
	_, failed := c.CancelTask(context.WithoutCancel(ctx), t.ID)
	return errors.Join(err, failed)
}

func handOverCommand(a *cli.App) *cobra.Command {
	return a.Verb("hand-over FOLDER USER", "Transfer a user's folder to another user, as an administrator", cli.Args(2, 2), func(ctx context.Context, c *client.Client, args []string) error {
		f, err := cli.FindFolder(ctx, c, args[0])
		if err != nil {
			return err
		}
		user, err := cli.FindUserID(ctx, c, args[1])
		if err != nil {
			return err
		}
		work, err := c.HandOverFolder(ctx, f.ID, user)
		if err != nil {
			return err
		}
		return task.Await(ctx, a, c, &work.Task)
	})
}
