package folder

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/admin/task"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/folder/transfer"
	"github.com/berthhq/berth/cmd/berth/output"
)

// relocation is a copy or a move of files and directories, within a folder or to another one.
type relocation struct {
	client   *client.Client
	from, to *client.Folder
	items    []client.MoveFileItem
	force    bool
}

func moveCommand(a *cli.App) *cobra.Command {
	cmd := relocates(a, "mv", "Move files and directories within a folder, or to another one", func(ctx context.Context, r *relocation) error {
		if r.from.QuotaScope.Volume.ID == r.to.QuotaScope.Volume.ID {
			results, err := r.client.MoveFiles(ctx, r.from.ID, r.to.ID, r.items, r.force)
			return filesDone(a, results, err)
		}
		results, err := carry(ctx, a, r)
		return filesDone(a, results, err)
	})
	cmd.Long = `Move or rename files and directories within a folder, or to another one. If there
are several sources, or the destination ends in a slash, it is a directory, and
the names stay. The directory must exist unless you use --parents. Nothing is
replaced without --force. Between volumes, each source is copied and then
deleted. A failure does not stop the others; the exit code is then not 0.`
	cmd.Example = "  berth folder mv data:raw/a.csv old/a.csv\n  berth folder mv data:runs/1 data:runs/2 archive:runs/"
	return cmd
}

func copyCommand(a *cli.App) *cobra.Command {
	cmd := relocates(a, "cp", "Copy files and directories within a folder, or to another one", func(ctx context.Context, r *relocation) error {
		work, err := r.client.CopyFiles(ctx, r.from.ID, r.to.ID, r.items, r.force)
		if err != nil {
			return err
		}
		return orCancel(ctx, a, r.client, &work.Task)
	})
	cmd.Long = `Copy files and directories within a folder, or to another one. If there are
several sources, or the destination ends in a slash, it is a directory, and the
names stay. The directory must exist unless you use --parents. Nothing is
replaced without --force. An interrupt stops the copy; files that were copied
stay.`
	cmd.Example = "  berth folder cp data:raw thesis:raw"
	return cmd
}

// relocates returns the command that copies or moves files.
func relocates(a *cli.App, name, short string, do func(context.Context, *relocation) error) *cobra.Command {
	var force, parents bool
	cmd := &cobra.Command{
		Use:               name + " FOLDER:FROM... [FOLDER:]TO",
		Short:             short,
		Args:              cli.Args(2, -1),
		ValidArgsFunction: a.CompleteFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := newRelocation(cmd.Context(), a, args, force)
			if err == nil && parents {
				err = r.makeParents(cmd.Context())
			}
			if err != nil {
				return err
			}
			return do(cmd.Context(), r)
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "replace files that are there")
	cmd.Flags().BoolVarP(&parents, "parents", "p", false, "make the directories of TO that are missing")
	return cmd
}

// newRelocation reads the arguments FROM... and TO. Without a folder, TO is in the folder of FROM.
func newRelocation(ctx context.Context, a *cli.App, args []string, force bool) (*relocation, error) {
	sources, last := args[:len(args)-1], args[len(args)-1]
	r := &relocation{force: force}
	for i, text := range sources {
		at := cli.ParsePlace(text)
		if at.Path == "" {
			return nil, cli.Usagef("FROM: name a path, as %s:PATH", at.Folder)
		}
		if first := cli.ParsePlace(sources[0]); i > 0 && at.Folder != first.Folder {
			return nil, cli.Usagef("FROM: %s is not in folder %s; move from one folder at a time", text, first.Folder)
		}
		r.items = append(r.items, client.MoveFileItem{From: at.Path})
	}
	var err error
	if r.client, r.from, _, err = a.FindPlace(ctx, sources[0]); err != nil {
		return nil, err
	}
	r.to = r.from
	to := cli.ParsePlace(":" + last)
	if strings.Contains(last, ":") {
		to = cli.ParsePlace(last)
		if to.Folder != cli.ParsePlace(sources[0]).Folder {
			if r.to, err = cli.FindFolder(ctx, r.client, to.Folder); err != nil {
				return nil, err
			}
		}
	}
	into := len(sources) > 1 || strings.HasSuffix(last, "/") || to.Path == ""
	for i := range r.items {
		r.items[i].To = to.Path
		if into {
			r.items[i].To = path.Join(to.Path, path.Base(r.items[i].From))
		}
	}
	return r, nil
}

// makeParents creates the target directories.
func (r *relocation) makeParents(ctx context.Context) error {
	var dirs []string
	for _, item := range r.items {
		if dir := path.Dir(item.To); dir != "." && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil
	}
	made, err := r.client.CreateDirectories(ctx, r.to.ID, dirs)
	for _, m := range made {
		if err == nil {
			err = transfer.FileError(m)
		}
	}
	return err
}

// carry moves items from one volume to another: a task of its own copies each item, so that each
// has its own result, and the copied items are deleted.
func carry(ctx context.Context, a *cli.App, r *relocation) ([]client.FileResult, error) {
	results := make([]client.FileResult, len(r.items))
	var arrived []string
	at := map[string]int{}
	for i, item := range r.items {
		results[i].Path, at[item.From] = item.From, i
		if err := copied(ctx, a, r, item); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			said := cli.OneLine(err)
			results[i].Error = &said
			continue
		}
		arrived = append(arrived, item.From)
	}
	if len(arrived) == 0 {
		return results, nil
	}
	gone, err := r.client.DeleteFiles(ctx, r.from.ID, arrived)
	for _, g := range gone {
		if i, ok := at[g.Path]; ok && g.Error != nil {
			said := "it was copied, and could not be deleted: " + *g.Error
			results[i].Error = &said
		}
	}
	return results, err
}

func copied(ctx context.Context, a *cli.App, r *relocation, item client.MoveFileItem) error {
	work, err := r.client.CopyFiles(ctx, r.from.ID, r.to.ID, []client.MoveFileItem{item}, r.force)
	if err != nil {
		return err
	}
	t, err := task.UntilEnded(ctx, a, r.client, &work.Task)
	if err != nil {
		_, failed := r.client.CancelTask(context.WithoutCancel(ctx), work.Task.ID)
		return errors.Join(err, failed)
	}
	return task.Failure(t)
}

// filesDone prints the result of each path, with failures on standard error, and returns an error
// if one failed.
func filesDone(a *cli.App, results []client.FileResult, err error) error {
	if err != nil {
		return err
	}
	var last error
	failed := 0
	for _, r := range results {
		if err := transfer.FileError(r); err != nil {
			failed++
			last = err
		}
	}
	err = a.Printer().Print(results, func() error {
		for _, r := range results {
			if r.Error != nil {
				a.Note("berth: %s: %s", r.Path, *r.Error)
			} else if _, err := fmt.Fprintln(a.Out, output.Clean(r.Path)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("%s failed: %w", cli.Plural(failed, "path"), last)
}
