package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/containerd/errdefs"
)

// here reads the local side. A directory that does not exist yet is empty.
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
	p, err := planned(s.app, []string{s.dir + "/."}, "")
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

// there reads the side in the folder.
func (s *syncing) there(ctx context.Context) (tree, error) {
	t := tree{}
	all, err := s.client.Tree(ctx, s.folder.ID, s.at, s.parallel)
	if errdefs.IsNotFound(err) && s.up && s.at != "" {
		s.fresh = true
		return t, nil
	}
	for _, f := range all {
		below := strings.TrimPrefix(strings.TrimPrefix(f.Path, s.at), "/")
		t[below] = entry{f.Type.String(), f.Size, f.ModifiedAt}
		if !t[below].travels() && !s.up {
			s.app.Note("berth: left out %s: a link, or neither a file nor a directory", f.Path)
		}
	}
	return t, err
}

// unchanged compares sizes and times. Copies keep the modification time in both directions, at the
// precision of the coarser side: some file systems and protocols have whole seconds only, but where
// both sides are finer, two changes within a second must be noticed.
func unchanged(here, there entry) bool {
	step := time.Millisecond
	if here.modified.Nanosecond() == 0 || there.modified.Nanosecond() == 0 {
		step = time.Second
	}
	return here.size == there.size && here.modified.Sub(there.modified).Abs() < step
}
