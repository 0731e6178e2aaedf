package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// GetCommand returns the command "berth folder get".
func GetCommand(a *cli.App) *cobra.Command {
	var asZip bool
	var flags transferFlags
	cmd := &cobra.Command{
		Use:   "get FOLDER[:PATH] [LOCAL]",
		Short: "Download a file, a directory, or a whole folder",
		Long: `Download a file, a directory, or a whole folder. LOCAL is a directory, or the new
name; - writes to standard output, a directory as a zip. A file arrives whole or
not at all, with its modification time; after a lost connection the download
resumes. A failure does not stop the other files; the exit code is then not 0.
Links in directories are skipped.`,
		Example:           "  berth folder get data:result.json\n  berth folder get data:runs/7 ./run-7",
		Args:              cli.Args(1, 2),
		ValidArgsFunction: a.CompleteFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			c, f, file, err := a.FindPlace(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			t := &transfer{transferFlags: flags, app: a, client: c, folder: f, bar: a.Progress("down")}
			defer t.bar.Clear()
			local := "."
			if len(args) > 1 {
				local = args[1]
			}
			return t.get(cmd.Context(), file, local, asZip)
		},
	}
	cmd.Flags().BoolVar(&asZip, "zip", false, "a directory as one zip file")
	addRecursive(cmd)
	flags.add(cmd)
	return cmd
}

// get downloads the files at a path of the folder; "" is the whole folder.
func (t *transfer) get(ctx context.Context, from, local string, asZip bool) error {
	one := &step{Action: download, Path: from}
	name, dir := t.folder.Name, true
	if from != "" {
		info, err := t.client.Stat(ctx, t.folder.ID, from)
		if err != nil {
			return err
		}
		name, dir = info.Name, info.Type == "DIRECTORY"
		if !dir {
			one.Size, one.modified = info.Size, info.ModifiedAt
		}
	}
	if local == "-" {
		d := client.Download{Folder: t.folder.ID, Path: from, Progress: t.counter(one), Warn: t.paused}
		return d.CopyTo(ctx, t.client, cli.Calm(t.app.Out, false))
	}
	if dir && asZip {
		name += ".zip"
	}
	if info, err := os.Stat(local); err == nil && info.IsDir() {
		local = filepath.Join(local, name)
	}
	steps, root := []*step{one}, filepath.Dir(local)
	one.below, one.Local = filepath.Base(local), local
	var err error
	if dir && !asZip {
		if steps, err = t.remote(ctx, from, local); err != nil {
			return err
		}
		if err := os.MkdirAll(local, 0o777); err != nil {
			return err
		}
		root = local
	}
	if t.root, err = os.OpenRoot(root); err != nil {
		return err
	}
	defer t.root.Close()
	t.total(steps)
	if err := t.down(ctx, steps); err != nil {
		return err
	}
	if t.failed == 0 && !t.app.Printer().Machine() {
		fmt.Fprintln(t.app.Out, output.Clean(local))
	}
	return t.finish("")
}

// remote lists the local files that a directory of the folder is downloaded to.
func (t *transfer) remote(ctx context.Context, from, local string) ([]*step, error) {
	all, err := t.client.Tree(ctx, t.folder.ID, from, t.parallel)
	if err != nil {
		return nil, err
	}
	var steps []*step
	for _, f := range all {
		below := strings.TrimPrefix(strings.TrimPrefix(f.Path, from), "/")
		s := &step{Action: download, Path: f.Path, Local: filepath.Join(local, below), below: below, Size: f.Size, modified: f.ModifiedAt}
		switch f.Type {
		case "DIRECTORY":
			s.Action, s.Size = makeDir, 0
		case "FILE":
		case "SYMLINK":
			t.app.Note("berth: left out %s: a link", f.Path)
			continue
		default:
			t.app.Note("berth: left out %s: neither a file nor a directory", f.Path)
			continue
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// down creates directories and then downloads files.
func (t *transfer) down(ctx context.Context, steps []*step) error {
	dirs, files := apart(steps)
	for _, s := range dirs {
		err := t.root.MkdirAll(s.below, 0o777)
		if stops(ctx, err) {
			return err
		}
		t.ended(s, err)
	}
	return t.each(ctx, files, func(ctx context.Context, i int) error { return t.fetch(ctx, files[i]) })
}

// fetch downloads into a temporary file beside the target, and then renames it.
func (t *transfer) fetch(ctx context.Context, s *step) error {
	if !fs.ValidPath(s.below) {
		return fmt.Errorf("not a path below the directory: %w", errdefs.ErrInvalidArgument)
	}
	part := path.Join(path.Dir(s.below), partPrefix+rand.Text())
	f, err := t.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer t.root.Remove(part) // after a success, the file no longer exists
	d := client.Download{Folder: t.folder.ID, Path: s.Path, Progress: t.counter(s), Warn: t.paused}
	err = d.CopyTo(ctx, t.client, f)
	if info, serr := f.Stat(); serr == nil {
		s.Size = info.Size() // the size of an archive is only known at its end
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if !s.modified.IsZero() {
		if err := t.root.Chtimes(part, s.modified, s.modified); err != nil {
			return err
		}
	}
	return t.root.Rename(part, s.below)
}

// counter shows the progress of one download.
func (t *transfer) counter(s *step) func(done, total int64) {
	count := t.bar.File(s.Path)
	return func(done, _ int64) { count(done) }
}

func (t *transfer) paused(err error) { t.bar.Pause(cli.OneLine(err)) }
