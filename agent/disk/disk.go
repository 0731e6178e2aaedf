// Package disk limits what a kernel writes on the disk of its machine: the writable
// layer of its container and its scratch directory lie below one directory, which is
// a project with a quota where the file system has project quotas, and else an ext4
// file system in a sparse file. Which of both it is, is decided when the agent
// starts. Only packages of the agent import it.
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

// Default is the limit of a kernel whose request names none.
const Default = 20 << 30

// Min is the smallest limit; below it, the image's own tables take too large a part.
const Min = 64 << 20

// Way is how limits are kept.
type Way string

// The ways, the best first.
const (
	Quota Way = "quota" // project quotas of the file system
	Image Way = "image" // a file system in a sparse file for each kernel
	None  Way = "none"  // not at all
)

// Usage is what a directory holds and may hold. A limit of 0 is none.
type Usage struct {
	Bytes, MaxBytes   int64
	Free              int64 // bytes that can still be written; ext4 keeps some for itself
	Inodes, MaxInodes int64
}

// Full reports whether hardly anything more can be written.
func (u Usage) Full() bool {
	const page = 4096 // ext4 refuses a write before the last blocks are used
	return u.MaxBytes > 0 && u.Free < max(min(u.MaxBytes/20, 64<<20), 16*page) || u.FullOfFiles()
}

// FullOfFiles reports whether hardly any files can be made.
func (u Usage) FullOfFiles() bool { return u.MaxInodes > 0 && u.MaxInodes-u.Inodes < 16 }

// Disks makes limited directories on one file system.
type Disks struct {
	way    Way
	dir    string // of templates
	logger *slog.Logger
	empty  *templates
	naming sync.Mutex // held while a project is chosen
}

// New finds out which way limits can be kept below dir, by trying. The probe says
// which it is. Run must follow.
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
	return d, &agentpb.Probe{Name: "session-disk", Detail: fmt.Sprintf("what sessions write on this machine has no limit: %v", reasons)}, nil
}

// try makes a small directory in one way, and looks whether it has the limit.
func (d *Disks) try(ctx context.Context, way Way) error {
	t := &Disks{way: way, dir: d.dir, logger: d.logger, empty: d.empty}
	at := filepath.Join(d.dir, "probe")
	if err := t.Remove(at); err != nil { // of an agent that was killed
		return err
	}
	err := t.Make(ctx, at, Min)
	if err == nil {
		var u Usage
		if u, err = t.Usage(at); err == nil && (u.MaxBytes == 0 || u.MaxBytes > Min) {
			err = fmt.Errorf("the limit is %d bytes, %d were asked for: %w", u.MaxBytes, int64(Min), errdefs.ErrFailedPrecondition)
		}
	}
	return errors.Join(err, t.Remove(at))
}

// Run prepares what the first kernel needs.
func (d *Disks) Run(ctx context.Context) {
	if d.way == Image {
		d.empty.warm(ctx)
	}
}

// Make makes a directory that holds at most so many bytes, 0 being Default. What is
// there under the name is removed first.
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

// Remove deletes a directory that Make made, and all in it. One that does not exist
// is not an error, nor one that was made in another way.
func (d *Disks) Remove(path string) error {
	if err := unmount(path); err != nil {
		return err
	}
	if err := os.Remove(imageOf(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := unproject(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// Usage measures a directory that Make made; all zeros where nothing limits it.
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
