package volume

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/admin/task"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func orphansCommand(a *cli.App) *cobra.Command {
	var remove, yes bool
	cmd := a.Verb("orphans VOLUME", "Compare a volume with the database, and remove orphans", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := cli.FindVolume(ctx, c, args[0])
			if err != nil {
				return err
			}
			found, err := c.VolumeOrphans(ctx, v.ID)
			if err != nil {
				return err
			}
			if remove {
				return removeOrphans(ctx, a, c, v, found, yes)
			}
			if !found.Complete {
				defer a.Note("berth: at most 1000 of each kind are listed; there is more")
			}
			return a.Table(found, func() *output.Table { return orphanTable(found) })
		})
	cmd.Long = `Compare a volume with the database. Orphans are folders and quota scopes on the
volume that the database does not have; a missing folder is in the database but
not on the volume. --remove deletes the orphans permanently, in tasks that
continue if berth is interrupted. Directories that no storage proxy created
(unknown) and missing folders are not changed: check them with the volume's own
tools, or delete the folder.`
	cmd.Example = "  berth admin volume orphans fast\n  berth admin volume orphans fast --remove"
	cmd.Flags().BoolVar(&remove, "remove", false, "delete the orphans permanently")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask before deleting")
	return cmd
}

func orphanTable(o *client.VolumeOrphans) *output.Table {
	t := output.NewTable("WHAT", "STATE", "ID", "SCOPE", "USED", "PATH").Spare("SCOPE")
	for _, f := range o.Folders {
		t.Row("folder", f.State, f.Folder, f.Scope, "", f.Path)
	}
	for _, s := range o.Scopes {
		t.Row("quota scope", "present", "", s.Scope, cli.Amount(s.UsedBytes, output.Bytes), "")
	}
	for _, f := range o.Missing {
		t.Row("folder "+f.Name, output.Cell{Text: "missing", Color: output.Red}, f.ID, "", cli.Amount(f.UsedBytes, output.Bytes), "")
	}
	return t
}

// removeOrphans deletes folders before the scopes that hold them.
func removeOrphans(ctx context.Context, a *cli.App, c *client.Client, v *client.Volume, o *client.VolumeOrphans, yes bool) error {
	type orphan struct{ scope, folder string }
	var folders, scopes []orphan
	for _, f := range o.Folders {
		if f.Folder == "" || f.Scope == "" {
			a.Note("berth: left %s, which no storage proxy created", f.Path)
			continue
		}
		folders = append(folders, orphan{f.Scope, f.Folder})
	}
	for _, s := range o.Scopes {
		scopes = append(scopes, orphan{scope: s.Scope})
	}
	what := cli.Plural(len(folders), "orphaned folder") + " and " + cli.Plural(len(scopes), "quota scope") + " of volume " + v.Name + " permanently"
	if len(folders)+len(scopes) == 0 {
		a.Note("berth: there is nothing to remove")
	} else if err := a.ConfirmDelete(ctx, what, yes); err != nil {
		return err
	}
	ended := []client.Task{}
	var failed error
	for _, group := range [][]orphan{folders, scopes} {
		var begun []*client.Task
		for _, one := range group {
			t, err := c.DeleteOrphan(ctx, v.ID, one.scope, one.folder)
			if err != nil {
				return err
			}
			begun = append(begun, t)
		}
		for _, t := range begun {
			t, err := task.UntilEnded(ctx, a, c, t)
			if err != nil {
				return err
			}
			if err := task.Failure(t); err != nil {
				failed = fmt.Errorf("%s: %w", t.Title, err)
			}
			ended = append(ended, *t)
		}
	}
	if err := a.Table(ended, func() *output.Table { return task.Table(a, ended...) }); err != nil {
		return err
	}
	return failed
}
