package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/client"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

// syncFlags are what berth folder sync can be told.
type syncFlags struct {
	move                     transferFlags
	checksum, tidy, yes, dry bool
}

func (a *app) folderSync() *cobra.Command {
	var flags syncFlags
	cmd := &cobra.Command{
		Use:   "sync FROM TO",
		Short: "Make a folder as a local directory is, or the other way round",
		Long: `Make a folder as a local directory is, or the other way round: one of FROM and TO
is a local directory, the other FOLDER:PATH, with the colon also for all of it.
(Without a colon, what begins with . or / is local.) Only what differs moves.

A file goes up when its size differs or it was changed here after it was there;
it comes down when its size or the time of its last change differs, which it
brings with it. --checksum compares by contents in place of times, and for that
reads all files of the same size, also over the network.

Nothing is deleted without --delete. What was cut off goes on when it is run
again. Links and special files are left out, empty directories are not.`,
		Example: "  berth folder sync ./src data:src\n  berth folder sync --delete --dry-run data:results ./results",
		Args:    count(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.move.check(); err != nil {
				return err
			}
			local, there, up, err := sides(args[0], args[1])
			if err != nil {
				return err
			}
			c, f, at, err := a.inFolder(cmd.Context(), there)
			if err != nil {
				return err
			}
			verb := map[bool]string{true: "up", false: "down"}[up]
			t := &transfer{transferFlags: flags.move, app: a, client: c, folder: f, bar: a.progress(verb)}
			defer t.bar.Clear()
			return (&syncing{transfer: t, syncFlags: flags, dir: local, at: at, up: up}).run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&flags.checksum, "checksum", false, "compare files of the same size by their contents")
	cmd.Flags().BoolVar(&flags.tidy, "delete", false, "delete at the one side what the other has not; berth asks first")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "do not ask before deleting")
	cmd.Flags().BoolVarP(&flags.dry, "dry-run", "n", false, "only say what would be done")
	flags.move.add(cmd)
	return cmd
}

// sides finds out which is the local directory.
func sides(from, to string) (local, there string, up bool, err error) {
	isThere := func(s string) bool {
		return strings.Contains(s, ":") && !strings.HasPrefix(s, ".") && !strings.HasPrefix(s, "/")
	}
	isLocal := func(s string) bool { return strings.HasPrefix(s, ".") || strings.HasPrefix(s, "/") }
	switch {
	case isThere(to) && !isThere(from), isLocal(from) && !isLocal(to):
		return from, to, true, nil
	case isThere(from) && !isThere(to), isLocal(to) && !isLocal(from):
		return to, from, false, nil
	}
	return "", "", false, usagef("one of both must be a local directory, as ./%s, and one FOLDER:PATH, as %s:", from, to)
}

// syncing is one run of berth folder sync.
type syncing struct {
	*transfer
	syncFlags
	dir   string // local
	at    string // in the folder
	up    bool
	fresh bool // at is yet to come
}

func (s *syncing) run(ctx context.Context) error {
	here, err := s.here()
	if err != nil {
		return err
	}
	there, err := s.there(ctx)
	if err != nil {
		return err
	}
	from, to := there, here
	if s.up {
		from, to = here, there
	}
	same := func(p string) bool { return s.unchanged(here[p], there[p]) }
	if s.checksum {
		alike, err := s.alike(ctx, here, there)
		if err != nil {
			return err
		}
		same = func(p string) bool { return alike[p] }
	}
	c := compare(from, to, same, s.tidy)
	if s.fresh {
		c.come = append([]change{{"", makeDir, entry{kind: "directory"}}}, c.come...)
	}
	way, come, extra := s.steps(c.way), s.steps(c.come), s.steps(c.extra)
	if s.dry {
		return s.show(append(append(way, come...), extra...))
	}
	if err := s.agree(ctx, len(way)+len(extra)); err != nil {
		return err
	}
	return s.apply(ctx, way, come, extra)
}

func (s *syncing) apply(ctx context.Context, way, come, extra []*step) error {
	if !s.up {
		if err := os.MkdirAll(s.dir, 0o777); err != nil {
			return err
		}
		var err error
		if s.root, err = os.OpenRoot(s.dir); err != nil {
			return err
		}
		defer s.root.Close()
	}
	var todo []*step
	for _, st := range come {
		if st.Action == leave {
			s.ended(st, fmt.Errorf("the other side has something else in its place; --delete replaces it: %w", errdefs.ErrFailedPrecondition))
			continue
		}
		todo = append(todo, st)
	}
	s.total(todo)
	if err := s.discard(ctx, way); err != nil {
		return err
	}
	move := s.down
	if s.up {
		move = s.transfer.up
	}
	if err := move(ctx, todo); err != nil {
		return err
	}
	if s.failed > 0 && len(extra) > 0 {
		s.app.note("berth: nothing more was deleted, as not all went well")
		return s.finish("")
	}
	if err := s.discard(ctx, extra); err != nil {
		return err
	}
	gone := ""
	if n := len(way) + len(extra); n > 0 {
		gone = ", " + plural(n, "path") + " deleted"
	}
	return s.finish(gone)
}

// here reads the local side. A directory that is yet to come is empty.
func (s *syncing) here() (tree, error) {
	t := tree{}
	info, err := os.Stat(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !s.up:
		return t, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist here: %w", s.dir, errdefs.ErrNotFound)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory: %w", s.dir, errdefs.ErrInvalidArgument)
	}
	p, err := s.app.planned([]string{s.dir + "/."}, "")
	if err != nil {
		return nil, err
	}
	for _, st := range p.steps {
		kind := "file"
		if st.Action == makeDir {
			kind = "directory"
		}
		t[st.Path] = entry{kind, st.Size, st.modified}
	}
	for skipped := range p.skipped {
		t[skipped] = entry{kind: "other"}
	}
	s.refuse(p.failed)
	return t, nil
}

// there reads the folder's side.
func (s *syncing) there(ctx context.Context) (tree, error) {
	t := tree{}
	all, err := s.client.Tree(ctx, s.folder.ID, s.at, s.parallel)
	if errdefs.IsNotFound(err) && s.up && s.at != "" {
		s.fresh = true
		return t, nil
	}
	for _, f := range all {
		below := strings.TrimPrefix(strings.TrimPrefix(f.Path, s.at), "/")
		t[below] = entry{f.Type, f.Size, f.ModifiedAt}
		if !t[below].travels() && !s.up {
			s.app.note("berth: left out %s: a link, or neither a file nor a directory", f.Path)
		}
	}
	return t, err
}

// unchanged tells from sizes and times. Up, the folder's file has the time of its
// upload; down, the local one has the folder's time.
func (s *syncing) unchanged(here, there entry) bool {
	if here.size != there.size {
		return false
	}
	if s.up {
		return !there.modified.Before(here.modified)
	}
	return there.modified.Sub(here.modified).Abs() < time.Microsecond
}

func (s *syncing) steps(list []change) []*step {
	all := make([]*step, len(list))
	for i, c := range list {
		st := &step{Action: c.action, Path: path.Join(s.at, c.path), Local: filepath.Join(s.dir, c.path), below: c.path, modified: c.modified}
		if c.kind == "file" {
			st.Size = c.size
		}
		if c.action == download && s.up {
			st.Action = upload
		}
		all[i] = st
	}
	return all
}

// show is all of a dry run.
func (s *syncing) show(steps []*step) error {
	return s.app.table(steps, func() *output.Table {
		t := output.NewTable("WOULD", "PATH", "SIZE")
		for _, st := range steps {
			size := ""
			if st.Action == upload || st.Action == download {
				size = output.Bytes(st.Size)
			}
			t.Row(st.Action, st.Path, size)
		}
		return t
	})
}

// agree asks before anything is deleted.
func (s *syncing) agree(ctx context.Context, n int) error {
	if n == 0 || s.yes {
		return nil
	}
	where := s.dir
	if s.up {
		where = s.folder.Name
	}
	if _, ok := terminal(s.app.in); !ok {
		return usagef("no terminal to ask on; use --yes to delete %s in %s", plural(n, "path"), where)
	}
	yes, err := s.app.agreed(ctx, fmt.Sprintf("Delete %s in %s with all below?", plural(n, "path"), output.Clean(where)))
	if err == nil && !yes {
		err = usagef("nothing was done")
	}
	return err
}

// discard removes paths with all below them.
func (s *syncing) discard(ctx context.Context, steps []*step) error {
	if s.up {
		return s.onPaths(ctx, steps, func(paths []string) ([]client.FileResult, error) {
			return s.client.DeleteFiles(ctx, s.folder.ID, paths)
		})
	}
	for _, st := range steps {
		s.ended(st, s.root.RemoveAll(st.below))
	}
	return ctx.Err()
}
