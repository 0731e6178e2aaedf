package containerd

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// noSpace returns an error with the needed and the free bytes if a pull has failed for a lack of space, and err
// otherwise. The error of containerd has no class then.
func (r *Runtime) noSpace(ctx context.Context, m *meter, err error) error {
	text := err.Error()
	if !strings.Contains(text, unix.ENOSPC.Error()) && !strings.Contains(text, unix.EDQUOT.Error()) {
		return err
	}
	p, ok := m.measure(context.WithoutCancel(ctx))
	free, known := r.free()
	if !ok || !known {
		return fmt.Errorf("no space left: %v: %w", err, errdefs.ErrResourceExhausted)
	}
	return fmt.Errorf("the image needs %d more bytes, and more to unpack them; %d bytes are free: no space left: %v: %w",
		p.Total-p.Done, free, err, errdefs.ErrResourceExhausted)
}

// free returns the free bytes of the disk of images.
func (r *Runtime) free() (int64, bool) {
	_, free, err := r.ImageDisk()
	return free, err == nil
}

// ImageDisk implements runtime.ImageRemover.
func (r *Runtime) ImageDisk() (size, free int64, err error) {
	var fs unix.Statfs_t
	if r.store == "" {
		return 0, 0, fmt.Errorf("containerd's content store is not on this host: %w", errdefs.ErrUnavailable)
	}
	if err := unix.Statfs(r.store, &fs); err != nil {
		return 0, 0, fmt.Errorf("disk of images: %w", err)
	}
	// Blocks that are reserved for root are neither free nor usable.
	usable := fs.Blocks - fs.Bfree + fs.Bavail
	return int64(usable) * int64(fs.Bsize), int64(fs.Bavail) * int64(fs.Bsize), nil
}
