package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

func (a *app) folderTrash() *cobra.Command {
	return group("trash", "List, restore or permanently delete folders in the trash",
		a.trashList(), a.trashRestore(), a.trashEmpty())
}

// findTrashed finds a folder in the trash.
func findTrashed(ctx context.Context, c *client.Client, ref string) (*client.Folder, error) {
	filter := client.FolderFilter{Name: ref, Trash: true}
	if isID(ref) {
		filter = client.FolderFilter{ID: ref, Trash: true}
	}
	all, err := c.Folders(ctx, filter)
	return one(ctx, c, "folder in the trash", ref, all, err, func(f client.Folder) (id, owner string) { return f.ID, "" })
}

func (a *app) trashList() *cobra.Command {
	return a.list("List folders in the trash", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Folders(ctx, client.FolderFilter{Trash: true})
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table {
			t := output.NewTable("NAME", "OWNER", "DELETED", "ID")
			for _, f := range list {
				deleted := ""
				if f.DeletedAt != nil {
					deleted = output.Age(a.now(), *f.DeletedAt)
				}
				t.Row(f.Name, holderText(nil, f.Project, f.Owner, "-"), deleted, f.ID)
			}
			return t
		})
	})
}

func (a *app) trashRestore() *cobra.Command {
	var name string
	cmd := a.verb("restore FOLDER", "Restore a folder from the trash", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		f, err := findTrashed(ctx, c, args[0])
		if err != nil {
			return err
		}
		if f, err = c.RestoreFolder(ctx, f.ID, name); err != nil {
			return err
		}
		return a.folderDone(f)
	})
	cmd.Flags().StringVar(&name, "name", "", "under another name, when the old one is taken")
	return cmd
}

func (a *app) trashEmpty() *cobra.Command {
	var project string
	var yes bool
	cmd := a.verb("empty", "Permanently delete all folders in your trash, or in a project's", count(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		whose, id := "trash", ""
		if project != "" {
			var err error
			if id, err = findProjectID(ctx, c, project); err != nil {
				return err
			}
			whose = project
		}
		if err := a.confirm(ctx, "trash", whose, yes); err != nil {
			return err
		}
		n, err := c.EmptyTrash(ctx, id)
		if err != nil {
			return err
		}
		return a.print().Print(map[string]int{"count": n}, func() error {
			_, err := fmt.Fprintln(a.out, plural(n, "folder"))
			return err
		})
	})
	cmd.Flags().StringVar(&project, "project", "", "the trash of a project")
	yesFlag(cmd, &yes)
	return cmd
}

func (a *app) folderDelete() *cobra.Command {
	var yes bool
	cmd := a.verb("delete FOLDER", "Permanently delete a folder and all its data, also in the trash", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		f, err := findTrashed(ctx, c, args[0])
		fresh := errdefs.IsNotFound(err)
		if fresh {
			f, err = findFolder(ctx, c, args[0])
		}
		if err != nil {
			return err
		}
		if err := a.confirm(ctx, "folder", f.Name, yes); err != nil {
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
		return a.awaitTask(ctx, c, &work.Task)
	})
	cmd.Long = `Delete a folder and all its data permanently, also from the trash. The deletion
continues if berth is interrupted.`
	yesFlag(cmd, &yes)
	return cmd
}

func (a *app) folderClone() *cobra.Command {
	var flags newFolder
	cmd := a.verb("clone FOLDER NAME", "Copy a folder", count(2, 2), func(ctx context.Context, c *client.Client, args []string) (err error) {
		f, err := findFolder(ctx, c, args[0])
		if err != nil {
			return err
		}
		copied, err := flags.input(ctx, c, args[1])
		if err != nil {
			return err
		}
		in := as[client.CloneVfolderInput](copied)
		in.ID = f.ID
		work, err := c.CloneFolder(ctx, in)
		if err != nil {
			return err
		}
		return a.orCancel(ctx, c, &work.Task)
	})
	cmd.Long = "Copy a folder. An interrupt cancels it and removes the copy."
	cmd.Example = "  berth folder clone weights weights-2 --usage-mode model"
	cmd.ValidArgsFunction = a.completeFolder
	flags.add(cmd, "that of the original", "that of the original", "make the copy the project's folder")
	return cmd
}

// orCancel waits for a task, which an interrupt cancels.
func (a *app) orCancel(ctx context.Context, c *client.Client, t *client.Task) error {
	err := a.awaitTask(ctx, c, t)
	if ctx.Err() == nil {
		return err
	}
	_, failed := c.CancelTask(context.WithoutCancel(ctx), t.ID)
	return errors.Join(err, failed)
}

func (a *app) folderHandOver() *cobra.Command {
	return a.verb("hand-over FOLDER USER", "Transfer a user's folder to another user, as an administrator", count(2, 2), func(ctx context.Context, c *client.Client, args []string) error {
		f, err := findFolder(ctx, c, args[0])
		if err != nil {
			return err
		}
		user, err := findUserID(ctx, c, args[1])
		if err != nil {
			return err
		}
		work, err := c.HandOverFolder(ctx, f.ID, user)
		if err != nil {
			return err
		}
		return a.awaitTask(ctx, c, &work.Task)
	})
}
