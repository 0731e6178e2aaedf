// Package disk limits the disk space of kernels: the writable layer of a container and its scratch
// directory are below one directory. On a file system with project quotas, this directory is a
// project with a limit; otherwise it is an ext4 file system in a sparse file. The mechanism is
// selected when the agent starts. Only packages of the agent import it.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/agentpb"
)

// Default is the limit of a kernel whose request has none.
const Default = 20 << 30

// Min is the smallest limit. Below it, ext4's metadata would take too large a part.
const Min = 64 << 20

// Way is the mechanism that enforces limits.
type Way string

// The mechanisms, in order of preference.
const (
	Quota Way = "quota" // project quotas of the file system
	Image Way = "image" // a file system in a sparse file for each kernel
	None  Way = "none"  // no limits
)

// Usage is the space that a directory uses and its limits. A limit of 0 means unlimited.
type Usage struct {
	Bytes, MaxBytes   int64
	Free              int64 // bytes that can still be written; ext4 reserves some for itself
	Inodes, MaxInodes int64
}

// Full reports whether almost no more bytes can be written.
func (u Usage) Full() bool {
	const page = 4096 // ext4 refuses a write before the last blocks are used
	return u.MaxBytes > 0 && u.Free < max(min(u.MaxBytes/20, 64<<20), 16*page) || u.FullOfFiles()
}

// FullOfFiles reports whether almost no more files can be created.
func (u Usage) FullOfFiles() bool { return u.MaxInodes > 0 && u.MaxInodes-u.Inodes < 16 }

// Disks creates limited directories on one file system.
type Disks struct {
	way    Way
	dir    string // of templates
	logger *slog.Logger
	empty  *templates
	naming sync.Mutex // serializes the choice of a project id
}

// New selects the mechanism that works below dir, by trying each. The probe contains the result.
// Run must be called next.
func New(ctx context.Context, dir string, logger *slog.Logger) (*Disks, *agentpb.Probe, error) {
	d := &Disks{way: None, dir: filepath.Join(dir, "disks"), logger: logger}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, nil, err
	}
	d.empty = &templates{dir: d.dir, logger: logger}
	if err := d.empty.sweep(); err != nil {
		return nil, nil, err
	}
	var reasons error
	for _, way := range []Way{Quota, Image} {
		err := d.try(ctx, way)
		if err == nil {
			d.way = way
			break
		}
		reasons = errors.Join(reasons, fmt.Errorf("%s: %w", way, err))
	}
	switch d.way {
	case Quota:
		return d, &agentpb.Probe{Name: "session-disk", Ok: true, Detail: "limited by project quotas"}, nil
	case Image:
		return d, &agentpb.Probe{Name: "session-disk", Ok: true, Detail: "limited by file systems in files"}, nil
	}
	return d, &agentpb.Probe{Name: "session-disk", Detail: fmt.Sprintf("the disk space of sessions on this machine has no limit: %v", reasons)}, nil
}

// try creates a small directory with one mechanism and verifies its limit.
func (d *Disks) try(ctx context.Context, way Way) error {
	t := &Disks{way: way, dir: d.dir, logger: d.logger, empty: d.empty}
	at := filepath.Join(d.dir, "probe")
	if err := t.Remove(at); err != nil { // left by an agent that was killed
		return err
	}
	err := t.Make(ctx, at, Min)
	if err == nil {
		var u Usage
		if u, err = t.Usage(at); err == nil && (u.MaxBytes == 0 || u.MaxBytes > Min) {
			err = fmt.Errorf("the limit is %d bytes, not %d as requested: %w", u.MaxBytes, int64(Min), errdefs.ErrFailedPrecondition)
		}
	}
	return errors.Join(err, t.Remove(at))
}

// Run prepares the template for the first kernel.
func (d *Disks) Run(ctx context.Context) {
	if d.way == Image {
		d.empty.warm(ctx)
	}
}

// Make creates a directory with a limit in bytes; 0 selects Default. It first removes anything that
// exists at the path.
func (d *Disks) Make(ctx context.Context, path string, bytes int64) error {
	if bytes == 0 {
		bytes = Default
	}
	if bytes < Min {
		return fmt.Errorf("a disk of %d bytes is below the minimum of %d: %w", bytes, int64(Min), errdefs.ErrInvalidArgument)
	}
	if err := d.Remove(path); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o711); err != nil {
		return err
	}
	var err error
	switch d.way {
	case Quota:
		err = d.project(path, bytes)
	case Image:
		err = d.image(ctx, path, bytes)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("disk of %d bytes: %w", bytes, err), d.Remove(path))
	}
	return nil
}

// clean is the suffix of a file that exists while the file system of a closed directory is complete. It has no
// journal, so after a crash of the machine it is not used again.
const clean = ".clean"

// Open makes a directory usable that Make created, with its contents, or creates it: after Close, or after a restart
// of the agent.
func (d *Disks) Open(ctx context.Context, path string, bytes int64) error {
	mounted, err := isMount(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.Make(ctx, path, bytes)
	case err != nil:
		return err
	case mounted || d.way != Image:
		return nil
	}
	if err := os.Remove(path + clean); err != nil {
		return d.Make(ctx, path, bytes)
	}
	if err := mount(imageOf(path), path); err != nil && !errors.Is(err, fs.ErrNotExist) { // lost+found is removed already
		return d.Make(ctx, path, bytes)
	}
	return nil
}

// Close unmounts a directory that nothing uses. Its contents stay for Open.
func (d *Disks) Close(path string) error {
	mounted, err := isMount(path)
	if err != nil || !mounted || d.way != Image {
		return err
	}
	if err := unmount(path); err != nil {
		return err
	}
	return os.WriteFile(path+clean, nil, 0o600)
}

// Remove deletes a directory that Make created, with its contents and with whatever mechanism it
// was created. A missing directory is not an error.
func (d *Disks) Remove(path string) error {
	if err := unmount(path); err != nil {
		return err
	}
	for _, file := range []string{imageOf(path), path + clean} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := unproject(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// Usage returns the usage of a directory that Make created. All values are zero if the directory
// has no limit.
func (d *Disks) Usage(path string) (Usage, error) {
	if d.way == Quota {
		return projectUsage(path)
	}
	if mounted, err := isMount(path); err != nil || !mounted {
		return Usage{}, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", path, err)
	}
	return Usage{
		Bytes: int64(st.Blocks-st.Bfree) * st.Bsize, MaxBytes: int64(st.Blocks) * st.Bsize, Free: int64(st.Bavail) * st.Bsize,
		Inodes: int64(st.Files - st.Ffree), MaxInodes: int64(st.Files),
	}, nil
}
