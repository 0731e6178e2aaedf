package commit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// staged is the copy of a regular file.
type staged struct {
	path    string
	size    int64
	attrs   map[string]string
	stat    syscall.Stat_t // before the copy
	settled bool           // stat proves that the copy is current
}

type inode struct{ dev, ino uint64 }

// round copies the files that have changed since the last round, and returns the entries and the bytes
// that it copied.
func (m *maker) round(ctx context.Context) (all []*entry, copied int64, err error) {
	err = m.walk(ctx, func(dir *os.Root, name string, e *entry) error {
		if e.kind() == unix.S_IFREG {
			id := inode{uint64(e.stat.Dev), e.stat.Ino}
			s := m.files[id]
			if s == nil || !s.settled || !unchanged(&s.stat, &e.stat) {
				var err error
				if s, err = m.copy(ctx, dir, name, e, s); err != nil {
					return vanished(err)
				}
				m.files[id] = s
				copied += s.size
			}
			e.file, e.attrs = s, s.attrs
		}
		all = append(all, e)
		return nil
	})
	return all, copied, err
}

// copy copies one file, without blocks where the file system can share them.
func (m *maker) copy(ctx context.Context, dir *os.Root, name string, e *entry, old *staged) (*staged, error) {
	from, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	s := &staged{}
	now := time.Now()
	if err := syscall.Fstat(int(from.Fd()), &s.stat); err != nil {
		return nil, err
	}
	if s.stat.Mode&unix.S_IFMT != unix.S_IFREG || s.stat.Ino != e.stat.Ino {
		return nil, fmt.Errorf("/%s was replaced: %w", e.path, os.ErrNotExist)
	}
	e.stat = s.stat
	s.settled = settled(&s.stat, now)
	if s.attrs, err = attributes(from, "security.capability", metacopyAttr); err != nil {
		return nil, fmt.Errorf("read attributes of /%s: %w", e.path, err)
	}
	if _, partial := s.attrs[metacopyAttr]; partial {
		return nil, fmt.Errorf("/%s has overlayfs's metacopy attribute, which cannot become a layer: %w", e.path, errdefs.ErrFailedPrecondition)
	}
	if old != nil {
		s.path = old.path
	} else {
		m.count++
		s.path = filepath.Join(m.dir, strconv.Itoa(m.count))
	}
	to, err := os.OpenFile(s.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("copy /%s: %w", e.path, err)
	}
	s.size, err = m.content(ctx, to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		return nil, fmt.Errorf("copy /%s: %w", e.path, full(err))
	}
	return s, nil
}

// piece is copied between two checks of the context and the limit.
const piece = 16 << 20

func (m *maker) content(ctx context.Context, to, from *os.File) (size int64, err error) {
	if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil {
		info, err := to.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size(), m.took(info.Size())
	}
	for {
		n, err := io.CopyN(to, from, piece)
		size += n
		if e := m.took(n); e != nil {
			return size, e
		}
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
		if err := ctx.Err(); err != nil {
			return size, err
		}
	}
}

// took counts copied bytes. A container that grows its files without end must not fill the machine's
// disk.
func (m *maker) took(n int64) error {
	if m.taken += n; m.taken > m.bound {
		return fmt.Errorf("the session writes faster than its files can be copied: copied %d bytes of %d: %w", m.taken, m.total, errdefs.ErrFailedPrecondition)
	}
	if m.report != nil {
		m.report(Copying, min(m.taken, m.total), m.total)
	}
	return nil
}

// full says what a full disk means here.
func full(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("the machine's disk has no space for a copy of the session's files: %w: %w", err, errdefs.ErrResourceExhausted)
	}
	return err
}
