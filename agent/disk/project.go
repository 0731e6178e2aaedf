package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/plugins/volume/xfs/prjquota"
)

// bytesPerInode limits the number of files of a kernel: 655,360 for 20 GiB.
const bytesPerInode = 32 << 10

// attempts limits the search for an unused project id; the first attempt almost always succeeds.
const attempts = 16

// project makes a directory a project with a limit.
func (d *Disks) project(path string, bytes int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	state, err := prjquota.StateOf(f)
	if err != nil {
		return err
	}
	if !state.Enforced {
		return fmt.Errorf("the file system does not enforce project quotas: %w", errdefs.ErrFailedPrecondition)
	}
	d.naming.Lock()
	defer d.naming.Unlock()
	for n := range attempts {
		id := prjquota.Candidate(filepath.Dir(path), n)
		used, err := prjquota.Get(f, id)
		if err != nil {
			return err
		}
		if used != (prjquota.Quota{}) {
			continue
		}
		if err := prjquota.Limit(f, id, bytes, bytes/bytesPerInode); err != nil {
			return err
		}
		return prjquota.Assign(f, id)
	}
	return fmt.Errorf("no free project for %s: %w", path, errdefs.ErrUnavailable)
}

// unproject removes the limit of a project, so that its id can be used again.
func unproject(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	id, _, err := prjquota.Of(f)
	if err != nil || id == 0 { // the file system has no projects
		return nil
	}
	return prjquota.Limit(f, id, 0, 0)
}

func projectUsage(path string) (Usage, error) {
	f, err := os.Open(path)
	if err != nil {
		return Usage{}, err
	}
	defer f.Close()
	id, _, err := prjquota.Of(f)
	if err != nil || id == 0 {
		return Usage{}, err
	}
	q, err := prjquota.Get(f, id)
	return Usage{Bytes: q.Bytes, MaxBytes: q.MaxBytes, Free: q.MaxBytes - q.Bytes, Inodes: q.Inodes, MaxInodes: q.MaxInodes}, err
}
