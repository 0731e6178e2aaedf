package containerd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/runtime"
)

// layer moves the writable layer of a container's mounts into the directory of its spec. The
// snapshot's own upper directory stays empty; the snapshot only provides the image's layers.
func layer(s runtime.Spec, mounts []mount.Mount) error {
	if s.Layer == "" {
		return nil
	}
	if len(mounts) != 1 || mounts[0].Type != "overlay" {
		return fmt.Errorf("the snapshot is not an overlay but %v: %w", mounts, errdefs.ErrFailedPrecondition)
	}
	upper, work := filepath.Join(s.Layer, "upper"), filepath.Join(s.Layer, "work")
	for i, option := range mounts[0].Options {
		if own, ok := strings.CutPrefix(option, "upperdir="); ok {
			if err := like(own, upper); err != nil {
				return err
			}
			mounts[0].Options[i] = "upperdir=" + upper
		}
		if strings.HasPrefix(option, "workdir=") {
			mounts[0].Options[i] = "workdir=" + work
		}
	}
	return os.Mkdir(work, 0o711)
}

// like creates a directory with the mode and owner of another one. They become those of the
// container's root directory.
func like(other, dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(other, &st); err != nil {
		return fmt.Errorf("stat %s: %w", other, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chown(dir, int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	return unix.Chmod(dir, st.Mode&0o7777)
}

// over returns the mount of a container whose image's files are in a directory. Its snapshot, which has no
// parent, becomes the writable layer.
func over(lower string, snapshot []mount.Mount) ([]mount.Mount, error) {
	if len(snapshot) != 1 || snapshot[0].Type != "bind" {
		return nil, fmt.Errorf("the snapshot is not a directory but %v: %w", snapshot, errdefs.ErrFailedPrecondition)
	}
	upper := snapshot[0].Source
	var st unix.Stat_t
	if err := unix.Stat(lower, &st); err != nil {
		return nil, fmt.Errorf("files of the image: %w", err)
	}
	if err := os.Chown(upper, int(st.Uid), int(st.Gid)); err != nil {
		return nil, err
	}
	if err := unix.Chmod(upper, st.Mode&0o7777); err != nil {
		return nil, err
	}
	return []mount.Mount{{Type: "overlay", Source: "overlay", Options: []string{
		"index=off", "workdir=" + filepath.Join(filepath.Dir(upper), "work"), "upperdir=" + upper, "lowerdir=" + lower,
	}}}, nil
}
