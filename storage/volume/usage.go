package volume

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// limitTimeout is how long an operation waits for the limit of a scope. If the plugin does not
// answer, the last known limit is used.
const limitTimeout = 2 * time.Second

// Limit returns a scope with its limit and usage, or nil if neither is known.
func (v *Volume) Limit(ctx context.Context, scope string) (*volumepb.Scope, error) {
	ask, cancel := context.WithTimeout(ctx, limitTimeout)
	defer cancel()
	s, err := v.GetScope(ask, scope)
	if err == nil || errdefs.IsNotFound(err) {
		return s, err
	}
	return v.LastScope(scope), nil
}

// Over returns an error if a scope has no room for a file, in addition to the reservations of
// others.
func Over(s *volumepb.Scope, size, promised int64) error {
	limit := s.GetLimit()
	if most := limit.GetInodes(); limit != nil && limit.Inodes != nil && s.GetUsedInodes() >= most {
		return problem.Full("one more file: the scope's limit is %d files and directories", most).WithLimit(strconv.FormatInt(most, 10))
	}
	if limit == nil || limit.Bytes == nil {
		return nil
	}
	most, taken := limit.GetBytes(), s.GetUsedBytes()+promised
	if size <= most-taken {
		return nil
	}
	return problem.Full("%d bytes: the scope's limit is %d bytes, and %d are in use", size, most, taken).WithLimit(strconv.FormatInt(most, 10))
}

// fits returns an error if a copy would exceed a limit that the proxy must enforce. A product that
// enforces the limit itself can determine the shared blocks of a copy.
func (v *Volume) fits(ctx context.Context, scope string, r Room) error {
	if v.Enforcement() != "cooperative" {
		return nil
	}
	return v.Reserve(ctx, scope, r)
}

// Space is the space of a folder in bytes and files: that of its scope's limit, or that of the
// file system if less.
type Space struct {
	Total, Left, Used int64  // bytes
	Files, FilesLeft  uint64 // 0 if the file system does not count files
}

// Space returns the folder's space. Reservations of writers are not part of the free space.
func (f *Folder) Space(ctx context.Context) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.dir.Fd()), &st); err != nil {
		return Space{}, classify("statfs", "", err)
	}
	out := Space{Total: int64(st.Blocks) * st.Bsize, Left: int64(st.Bavail) * st.Bsize, Files: st.Files, FilesLeft: st.Ffree}
	out.Used = out.Total - int64(st.Bfree)*st.Bsize
	scope := f.Path[:32]
	s, err := f.vol.Limit(ctx, scope)
	if err != nil {
		return Space{}, err
	}
	if s != nil && s.UsedBytes != nil {
		out.Used = *s.UsedBytes + f.vol.promised(scope, s)
	}
	if l := s.GetLimit(); l != nil && l.Bytes != nil {
		out.Total = *l.Bytes
		out.Left = max(0, min(out.Left, out.Total-s.GetUsedBytes()-f.vol.promised(scope, s)))
	}
	if l := s.GetLimit(); l != nil && l.Inodes != nil {
		out.Files = uint64(max(0, *l.Inodes))
		out.FilesLeft = uint64(max(0, *l.Inodes-s.GetUsedInodes()))
	}
	return out, nil
}

// counter counts the entries of trees, and the bytes of files if they must be copied. The
// result is approximate if the tree changes meanwhile.
type counter struct {
	ctx   context.Context
	sizes bool // count bytes too, which needs a stat for each file
	files int64
	bytes int64
	links map[inode]bool // files with several names that were counted
}

// count counts an entry and its contents.
func (c *counter) count(dir *os.File, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return vanished(err)
	}
	c.files++
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return c.below(dir, name, 0)
	}
	c.add(&st)
	return nil
}

// below counts the contents of a directory.
func (c *counter) below(dir *os.File, name string, depth int) error {
	if depth > walkDepth {
		return nil
	}
	d, err := openDir(dir, name, inside)
	if err != nil {
		return vanished(err)
	}
	defer d.Close()
	if err := c.ctx.Err(); err != nil {
		return err
	}
	var dirs []string
	err = eachEntry(d, func(name []byte, kind byte) {
		c.files++
		if kind = kindOf(d, string(name), kind); kind == unix.DT_DIR {
			dirs = append(dirs, string(name))
		}
		if c.sizes && kind == unix.DT_REG {
			var st unix.Stat_t
			if unix.Fstatat(int(d.Fd()), string(name), &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
				c.add(&st)
			}
		}
	})
	if err != nil {
		return vanished(err)
	}
	for _, name := range dirs {
		if err := c.below(d, name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *counter) add(st *unix.Stat_t) {
	if !c.sizes || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	if st.Nlink > 1 {
		id := inode{st.Dev, st.Ino}
		if c.links[id] {
			return
		}
		if c.links == nil {
			c.links = make(map[inode]bool)
		}
		c.links[id] = true
	}
	c.bytes += st.Size
}

// maxChecks limits the names that are checked for the depth of a tree. A larger tree is assumed
// not to be too deep.
const maxChecks = 100_000

// deeper reports whether a tree has more than the given number of levels below its top.
func deeper(dir *os.File, name string, levels int) bool {
	checks := maxChecks
	var below func(dir *os.File, name string, levels int) bool
	below = func(dir *os.File, name string, levels int) bool {
		d, err := openDir(dir, name, inside)
		if err != nil {
			return false
		}
		defer d.Close()
		var dirs []string
		found := false
		_ = eachEntry(d, func(name []byte, kind byte) {
			checks--
			found = true
			if checks > 0 && kindOf(d, string(name), kind) == unix.DT_DIR {
				dirs = append(dirs, string(name))
			}
		})
		if found && levels <= 0 {
			return true
		}
		for _, name := range dirs {
			if checks > 0 && below(d, name, levels-1) {
				return true
			}
		}
		return false
	}
	return below(dir, name, levels)
}

// vanished returns nil for errors of an entry that was removed or replaced after it was
// listed.
func vanished(err error) error {
	for _, gone := range []error{unix.ENOENT, unix.ELOOP, unix.ENOTDIR, unix.EXDEV} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}

// Meter counts the progress of a long call for an observer. Counts only grow. NewMeter creates
// one.
type Meter struct {
	files, bytes       atomic.Int64
	allFiles, allBytes atomic.Int64
	moved              chan struct{}
	watched            func(bytes int64) // may be nil
}

// Progress is the progress of a long call. A total of 0 is not counted yet.
type Progress struct {
	Files, FilesTotal int64
	Bytes, BytesTotal int64
}

// Steps of a meter after which Moved receives a value.
const (
	stepFiles = 1000
	stepBytes = 256 << 20
)

// NewMeter returns a meter at zero.
func NewMeter() *Meter { return &Meter{moved: make(chan struct{}, 1)} }

// Moved receives a value when much has been done since the last receive.
func (m *Meter) Moved() <-chan struct{} { return m.moved }

// Read returns the progress.
func (m *Meter) Read() Progress {
	p := Progress{
		FilesTotal: m.allFiles.Load(), BytesTotal: m.allBytes.Load(),
		Files: m.files.Load(), Bytes: m.bytes.Load(),
	}
	if p.FilesTotal > 0 { // entries that appeared after the count
		p.FilesTotal = max(p.FilesTotal, p.Files)
	}
	if p.BytesTotal > 0 {
		p.BytesTotal = max(p.BytesTotal, p.Bytes)
	}
	return p
}

// did adds completed work.
func (m *Meter) did(files, bytes int64) {
	f, b := m.files.Add(files), m.bytes.Add(bytes)
	if m.watched != nil && bytes > 0 {
		m.watched(b)
	}
	if files > 0 && f%stepFiles == 0 || b/stepBytes != (b-bytes)/stepBytes {
		select {
		case m.moved <- struct{}{}:
		default: // the observer has not read the last value yet
		}
	}
}

// watch sets a function that is called with the number of copied bytes. It must be called
// before the copy begins.
func (m *Meter) watch(f func(bytes int64)) { m.watched = f }

// expect adds to the totals.
func (m *Meter) expect(files, bytes int64) {
	m.allFiles.Add(files)
	m.allBytes.Add(bytes)
}
