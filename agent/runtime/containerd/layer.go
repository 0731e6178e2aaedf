package containerd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/runtime"
)

// layer creates the writable layer of a container in the directory of its spec. The snapshot's own
// upper directory stays empty; the snapshot only provides the image's layers.
func (r *Runtime) layer(ctx context.Context, s runtime.Spec) ([]client.NewTaskOpts, error) {
	if s.Layer == "" {
		return nil, nil
	}
	mounts, err := r.client.SnapshotService(snapshotter).Mounts(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	if len(mounts) != 1 || mounts[0].Type != "overlay" {
		return nil, fmt.Errorf("the snapshot is no overlay but %v: %w", mounts, errdefs.ErrFailedPrecondition)
	}
	upper, work := filepath.Join(s.Layer, "upper"), filepath.Join(s.Layer, "work")
	for i, option := range mounts[0].Options {
		if own, ok := strings.CutPrefix(option, "upperdir="); ok {
			if err := like(own, upper); err != nil {
				return nil, err
			}
			mounts[0].Options[i] = "upperdir=" + upper
		}
		if strings.HasPrefix(option, "workdir=") {
			mounts[0].Options[i] = "workdir=" + work
		}
	}
	if err := os.Mkdir(work, 0o711); err != nil {
		return nil, err
	}
	return []client.NewTaskOpts{client.WithRootFS(mounts)}, nil
}

// like creates a directory with the mode and owner of another one. They become those of the
// container's root directory.
func like(other, dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(other, &st); err != nil {
		return fmt.Errorf("look at %s: %w", other, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chown(dir, int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	return unix.Chmod(dir, st.Mode&0o7777)
}
