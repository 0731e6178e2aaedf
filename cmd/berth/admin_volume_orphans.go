package main

import (
	"context"
	"fmt"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) volumeOrphans() *cobra.Command {
	var remove, yes bool
	cmd := a.verb("orphans VOLUME", "Compare a volume with the database, and remove orphans", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := findVolume(ctx, c, args[0])
			if err != nil {
				return err
			}
			found, err := c.VolumeOrphans(ctx, v.ID)
			if err != nil {
				return err
			}
			if remove {
				return a.removeOrphans(ctx, c, v, found, yes)
			}
			if !found.Complete {
				defer a.note("berth: at most 1000 of each kind are listed; there is more")
			}
			return a.table(found, func() *output.Table { return orphanTable(found) })
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
		t.Row("quota scope", "present", "", s.Scope, amount(s.UsedBytes, output.Bytes), "")
	}
	for _, f := range o.Missing {
		t.Row("folder "+f.Name, output.Cell{Text: "missing", Color: output.Red}, f.ID, "", amount(f.UsedBytes, output.Bytes), "")
	}
	return t
}

// removeOrphans deletes folders before the scopes that hold them.
func (a *app) removeOrphans(ctx context.Context, c *client.Client, v *client.Volume, o *client.VolumeOrphans, yes bool) error {
	type orphan struct{ scope, folder string }
	var folders, scopes []orphan
	for _, f := range o.Folders {
		if f.Folder == "" || f.Scope == "" {
			a.note("berth: left %s, which no storage proxy made", f.Path)
			continue
		}
		folders = append(folders, orphan{f.Scope, f.Folder})
	}
	for _, s := range o.Scopes {
		scopes = append(scopes, orphan{scope: s.Scope})
	}
	what := plural(len(folders), "orphaned folder") + " and " + plural(len(scopes), "quota scope") + " of volume " + v.Name + " permanently"
	if len(folders)+len(scopes) == 0 {
		a.note("berth: there is nothing to remove")
	} else if err := a.mayDelete(ctx, what, yes); err != nil {
		return err
	}
	ended := []client.Task{}
	var failed error
	for _, group := range [][]orphan{folders, scopes} {
		var begun []*client.Task
		for _, one := range group {
			t, err := c.RemoveOrphan(ctx, v.ID, one.scope, one.folder)
			if err != nil {
				return err
			}
			begun = append(begun, t)
		}
		for _, t := range begun {
			t, err := a.untilEnded(ctx, c, t)
			if err != nil {
				return err
			}
			if err := taskFailure(t); err != nil {
				failed = fmt.Errorf("%s: %w", t.Title, err)
			}
			ended = append(ended, *t)
		}
	}
	if err := a.table(ended, func() *output.Table { return a.taskTable(ended...) }); err != nil {
		return err
	}
	return failed
}
