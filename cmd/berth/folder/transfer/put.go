package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// PutCommand returns the command "berth folder put".
func PutCommand(a *cli.App) *cobra.Command {
	var skip bool
	var flags transferFlags
	cmd := &cobra.Command{
		Use:   "put FOLDER[:DIR] SOURCE... [:DIR]",
		Short: "Upload files and directories",
		Long: `Upload files and directories into a folder, or into a directory of it. The
SHA-256 of every chunk is checked. An interrupted upload, also of an earlier run,
resumes if the file is unchanged. A failure does not stop the other files; the
exit code is then not 0.

A file of the same name is replaced, as with cp; --skip-existing skips files of
the same size. A directory keeps its name; DIRECTORY/. uploads its contents.
Links in directories and special files are skipped.`,
		Example: "  berth folder put data train.py images/\n  berth folder put data:raw *.csv",
		Args:    cli.Args(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sources, to := args[1:], cli.ParsePlace(args[0])
			if last := sources[len(sources)-1]; strings.HasPrefix(last, ":") {
				if sources = sources[:len(sources)-1]; len(sources) == 0 || to.Path != "" {
					return cli.Usagef("usage: %s", cmd.UseLine())
				}
				to.Path = cli.ParsePlace(last).Path
			}
			if err := flags.check(); err != nil {
				return err
			}
			p, err := planned(a, sources, to.Path)
			if err != nil {
				return err
			}
			c, f, _, err := a.FindPlace(cmd.Context(), to.Folder)
			if err != nil {
				return err
			}
			t := &transfer{transferFlags: flags, app: a, client: c, folder: f, bar: a.Progress("up")}
			defer t.bar.Clear()
			steps := p.steps
			if skip {
				if steps, err = t.missing(cmd.Context(), steps); err != nil {
					return err
				}
			}
			t.refuse(p.failed)
			t.total(steps)
			if err := t.up(cmd.Context(), steps); err != nil {
				return err
			}
			return t.finish("")
		},
		ValidArgsFunction: a.CompleteFolder,
	}
	cmd.Flags().BoolVar(&skip, "skip-existing", false, "leave out files that are there in the same size")
	addRecursive(cmd)
	flags.add(cmd)
	return cmd
}

// refuse records the steps that failed before the upload began.
func (t *transfer) refuse(steps []*step) {
	for _, s := range steps {
		t.ended(s, errors.New(s.Error))
	}
}

// batch is how many tickets are requested at once: few enough that none expires before it is used.
const batch = 100

// maxPaths is the most paths that the server accepts in one request.
const maxPaths = 1000

// up creates directories and then uploads files.
func (t *transfer) up(ctx context.Context, steps []*step) error {
	dirs, files := apart(steps)
	err := t.onPaths(ctx, dirs, func(paths []string) ([]client.FileResult, error) {
		return t.client.CreateDirectories(ctx, t.folder.ID, paths)
	})
	if err != nil {
		return fmt.Errorf("make directories: %w", err)
	}
	for some := range slices.Chunk(files, batch) {
		targets, err := t.targets(ctx, some)
		if err != nil {
			return err
		}
		if err := t.each(ctx, some, func(ctx context.Context, i int) error { return t.send(ctx, some[i], targets[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// apart separates directories from files.
func apart(steps []*step) (dirs, files []*step) {
	for _, s := range steps {
		if s.Action == makeDir {
			dirs = append(dirs, s)
		} else {
			files = append(files, s)
		}
	}
	return dirs, files
}

// onPaths sends the paths of the steps to the server, many in one request.
func (t *transfer) onPaths(ctx context.Context, steps []*step, do func(paths []string) ([]client.FileResult, error)) error {
	for some := range slices.Chunk(steps, maxPaths) {
		paths := make([]string, len(some))
		for i, s := range some {
			paths[i] = s.Path
		}
		results, err := do(paths)
		if err != nil {
			return err
		}
		if len(results) != len(some) {
			return fmt.Errorf("the server answered for %d paths out of %d: %w", len(results), len(some), errdefs.ErrInternal)
		}
		for i, r := range results {
			t.ended(some[i], FileError(r))
		}
	}
	return ctx.Err()
}

// targets requests tickets. If the server rejects one name, every file requests its own ticket
// later, so that only the file with that name fails.
func (t *transfer) targets(ctx context.Context, files []*step) ([]*client.UploadTarget, error) {
	targets := make([]*client.UploadTarget, len(files))
	announce := make([]client.UploadFileInput, len(files))
	for i, f := range files {
		announce[i] = client.UploadFileInput{Path: f.Path, Size: f.Size}
	}
	got, err := t.client.CreateUpload(ctx, t.folder.ID, announce)
	if errdefs.IsInvalidArgument(err) {
		return targets, nil
	}
	if err == nil && len(got) != len(files) {
		err = fmt.Errorf("the server gave %d tickets for %d files: %w", len(got), len(files), errdefs.ErrInternal)
	}
	if err != nil {
		return nil, err
	}
	for i := range got {
		targets[i] = &got[i]
	}
	return targets, nil
}

func (t *transfer) send(ctx context.Context, s *step, target *client.UploadTarget) error {
	f, err := os.Open(s.Local)
	if err != nil {
		return err
	}
	defer f.Close()
	ticket := func(ctx context.Context) (client.UploadTarget, error) {
		fresh, err := t.client.CreateUpload(ctx, t.folder.ID, []client.UploadFileInput{{Path: s.Path, Size: s.Size}})
		if err != nil || len(fresh) != 1 {
			return client.UploadTarget{}, errors.Join(err, errdefs.ErrInternal)
		}
		return fresh[0], nil
	}
	if target == nil {
		fresh, err := ticket(ctx)
		if err != nil {
			return err
		}
		target = &fresh
	}
	note := newResumeNote(t.app, t.client.Base(), t.folder.ID, s)
	u := client.Upload{
		Target: *target, Source: f, Size: s.Size, Modified: s.modified,
		Location: note.Read(), Created: note.Write, Progress: t.bar.File(s.Path),
		Warn:  func(err error) { t.bar.Pause(cli.OneLine(err)) },
		Renew: ticket,
	}
	if err := u.Run(ctx, t.client); err != nil {
		return err
	}
	note.Remove()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != s.Size || !info.ModTime().Equal(s.modified) {
		return fmt.Errorf("it changed while it was uploaded; put it again: %w", errdefs.ErrAborted)
	}
	return nil
}

// missing leaves out the files that exist in the folder with the same size.
func (t *transfer) missing(ctx context.Context, steps []*step) ([]*step, error) {
	listed := map[string]map[string]int64{}
	var rest []*step
	for _, s := range steps {
		dir := path.Dir(s.Path)
		if dir == "." {
			dir = ""
		}
		if _, ok := listed[dir]; !ok {
			there := map[string]int64{}
			files, err := t.client.Files(ctx, t.folder.ID, dir)
			if err != nil && !errdefs.IsNotFound(err) {
				return nil, err
			}
			for _, f := range files {
				if f.Type == "FILE" {
					there[f.Name] = f.Size
				}
			}
			listed[dir] = there
		}
		if size, ok := listed[dir][path.Base(s.Path)]; ok && s.Action == upload && size == s.Size {
			continue
		}
		rest = append(rest, s)
	}
	return rest, nil
}
