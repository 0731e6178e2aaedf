package transfer

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// syncing is one run of berth folder sync.
type syncing struct {
	*transfer
	syncFlags
	dir   string // local
	at    string // in the folder
	up    bool
	fresh bool // the target does not exist yet
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
	same := func(p string) bool { return unchanged(here[p], there[p]) }
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
		s.app.Note("berth: nothing more was deleted, as not all went well")
		return s.finish("")
	}
	if err := s.discard(ctx, extra); err != nil {
		return err
	}
	gone := ""
	if n := len(way) + len(extra); n > 0 {
		gone = ", " + cli.Plural(n, "path") + " deleted"
	}
	return s.finish(gone)
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

// show prints a dry run.
func (s *syncing) show(steps []*step) error {
	return s.app.Table(steps, func() *output.Table {
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

// agree asks for confirmation before paths are deleted.
func (s *syncing) agree(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	where := s.dir
	if s.up {
		where = s.folder.Name
	}
	return s.app.ConfirmDelete(ctx, fmt.Sprintf("%s in %s with all below", cli.Plural(n, "path"), output.Clean(where)), s.yes)
}

// discard removes paths with everything below them.
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
