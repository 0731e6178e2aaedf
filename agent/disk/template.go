package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// templates caches an empty file system for each recently requested size. A kernel's disk is a copy
// of its written blocks, which costs a fraction of mkfs.ext4. All copies have the same UUID, which
// nothing uses to find them.
type templates struct {
	dir    string
	logger *slog.Logger

	mu    sync.Mutex
	sizes []int64 // least recently used first
}

const (
	// maxTemplates limits the cache, because users can request any size.
	maxTemplates = 8
	// maxBlocks is far above the data in an empty file system. A host file system that does not
	// distinguish holes from data exceeds it.
	maxBlocks = 64 << 20
)

// sweep removes the templates of an earlier agent, which may have been created by another version
// of mkfs.
func (t *templates) sweep() error {
	for _, pattern := range []string{"template-*", "spare-*"} { // earlier agents without templates left "spare" files
		old, err := filepath.Glob(filepath.Join(t.dir, pattern))
		if err != nil {
			return err
		}
		for _, file := range old {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// warm creates the template of the default size.
func (t *templates) warm(ctx context.Context) {
	file := filepath.Join(t.dir, "template-first")
	err := t.make(ctx, Default, file)
	if err = errors.Join(err, os.RemoveAll(file)); err != nil && ctx.Err() == nil {
		t.logger.Warn("create the first template of disks", "error", err)
	}
}

// make creates a file with an empty file system of a size.
func (t *templates) make(ctx context.Context, size int64, file string) error {
	if t.copied(size, file) {
		return nil
	}
	if err := format(ctx, file, size); err != nil {
		return err
	}
	t.keep(size, file)
	return nil
}

// copied creates the file from a template and reports whether the template exists.
func (t *templates) copied(size int64, file string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.sizes, size) {
		return false
	}
	err := copyBlocks(t.path(size), file)
	if err == nil {
		return true
	}
	t.logger.Warn("copy a template of disks", "error", err)
	t.drop(size)
	_ = os.Remove(file)
	return false
}

// keep makes a newly formatted file the template of its size.
func (t *templates) keep(size int64, file string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.sizes, size) {
		return
	}
	if len(t.sizes) == maxTemplates {
		t.drop(t.sizes[0])
	}
	if err := copyBlocks(file, t.path(size)); err != nil {
		_ = os.Remove(t.path(size))
		t.logger.Warn("store a template of disks", "error", err)
		return
	}
	t.sizes = append(t.sizes, size)
}

// drop removes a template. The caller must hold t.mu.
func (t *templates) drop(size int64) {
	_ = os.Remove(t.path(size))
	t.sizes = slices.DeleteFunc(t.sizes, func(s int64) bool { return s == size })
}

func (t *templates) path(size int64) string {
	return filepath.Join(t.dir, "template-"+strconv.FormatInt(size, 10))
}

// copyBlocks creates a sparse copy of a file.
func copyBlocks(from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	st, err := src.Stat()
	if err != nil {
		return err
	}
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if err := dst.Truncate(st.Size()); err != nil {
		return err
	}
	for at, copied := int64(0), int64(0); ; {
		data, err := src.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // no data after this offset
			return nil
		}
		if err != nil {
			return err
		}
		if at, err = src.Seek(data, unix.SEEK_HOLE); err != nil {
			return err
		}
		if copied += at - data; copied > maxBlocks {
			return fmt.Errorf("%s has more than %d bytes of data: %w", from, int64(maxBlocks), errdefs.ErrFailedPrecondition)
		}
		if _, err := io.Copy(io.NewOffsetWriter(dst, data), io.NewSectionReader(src, data, at-data)); err != nil {
			return err
		}
	}
}
