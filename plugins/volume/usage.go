package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// Usage measures the tree at dir by walking it. It counts allocated bytes like du(1), and a file
// with several names once. It does not follow symbolic links or enter other file systems, and skips
// entries that disappear during the walk.
func Usage(ctx context.Context, dir string) (*volumepb.TreeUsageReport, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return UsageAt(ctx, os.NewFile(uintptr(fd), dir))
}

// UsageAt is Usage for an open directory; it closes root.
func UsageAt(ctx context.Context, root *os.File) (*volumepb.TreeUsageReport, error) {
	w := &walk{ctx: ctx, links: make(map[uint64]struct{})}
	// Data that is written during the walk may be missing.
	w.report.AsOfUnixMs = time.Now().UnixMilli()
	var st unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &st); err != nil {
		return nil, errors.Join(fmt.Errorf("stat %s: %w", root.Name(), err), root.Close())
	}
	w.device = uint64(st.Dev)
	w.report.Bytes = st.Blocks * 512
	if err := w.directory(root, 0); err != nil {
		return nil, fmt.Errorf("measure %s: %w", root.Name(), err)
	}
	w.report.Exact = !w.deep
	return &w.report, nil
}

// maxDepth limits the number of open descriptors, which is one per level. Deeper trees can be
// created by relative mkdir calls; their deeper levels are skipped, and the report is marked as not
// exact.
const maxDepth = 512

type walk struct {
	ctx    context.Context
	device uint64
	links  map[uint64]struct{} // inodes with several names that were counted
	report volumepb.TreeUsageReport
	deep   bool // some levels were skipped
}

// directory adds the entries of d and closes it.
func (w *walk) directory(d *os.File, depth int) error {
	defer d.Close()
	if depth > maxDepth {
		w.deep = true
		return nil
	}
	fd := int(d.Fd())
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if err := w.entry(fd, name, depth); err != nil {
				return err
			}
		}
		if len(names) == 0 {
			return ended(err)
		}
	}
}

func (w *walk) entry(parent int, name string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return fmt.Errorf("stat %q: %w", name, err)
	}
	if uint64(st.Dev) != w.device {
		return nil
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		w.report.Directories++
		w.report.Bytes += st.Blocks * 512
		fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			// The entry was removed or replaced since the stat.
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
				return nil
			}
			return fmt.Errorf("open %q: %w", name, err)
		}
		return w.directory(os.NewFile(uintptr(fd), name), depth+1)
	}
	w.report.Files++
	if st.Nlink > 1 {
		if _, seen := w.links[st.Ino]; seen {
			return nil
		}
		w.links[st.Ino] = struct{}{}
	}
	w.report.Bytes += st.Blocks * 512
	return nil
}

// ended converts the error at the end of a listing to nil.
func ended(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
