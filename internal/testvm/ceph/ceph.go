// Package ceph makes a real Ceph of one node for the time of a test or a
// demonstration: a monitor, a manager, one OSD that keeps everything in memory, a
// metadata server, and a client that has mounted its file system. All of it is on
// loopback, without authentication, in a temporary directory, and goes with the
// process that made it. It needs root, /dev/fuse and Debian's ceph packages; where
// one is missing Make says which.
package ceph

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/testvm/daemon"
	"github.com/berthhq/berth/internal/testvm/leftover"
)

// Size is what the file system can hold: memory, taken as it is written to.
const Size = 4 << 30

// Cluster is a Ceph that runs.
type Cluster struct {
	Mount   string
	dir     string
	lock    *os.File
	daemons *daemon.Group
	fuse    *daemon.Process // the client
}

const (
	prefix = "berth-ceph-"
	mount  = "mount"
	logs   = "log"
)

// farewell is what the client has to end once it is unmounted.
const farewell = 5 * time.Second

// timeout is for each step of the start, on a machine that is busy: 5 s are
// enough for all of them on one that is not.
const timeout = 2 * time.Minute

// Make starts a cluster and mounts its file system. Its error is Unavailable where
// that cannot be done. What processes left that were killed is removed first.
func Make(ctx context.Context) (*Cluster, error) {
	if err := daemon.Possible("ceph", "test-ceph", "ceph", "ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "monmaptool"); err != nil {
		return nil, err
	}
	sweep()
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, Mount: filepath.Join(dir, mount)}
	c.daemons = daemon.New(filepath.Join(dir, logs), append(os.Environ(), "CEPH_CONF="+filepath.Join(dir, file)))
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("make ceph: %w", err), c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	var err error
	if c.lock, err = leftover.Lock(c.dir); err != nil {
		return err
	}
	// Users of a session must be able to pass.
	if err := errors.Join(os.Chmod(c.dir, 0o755), os.Mkdir(c.Mount, 0o755)); err != nil {
		return err
	}
	monitor, err := free()
	if err != nil {
		return err
	}
	if err := configure(c.dir, monitor); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{c.monitor, c.storage, c.filesystem, c.client} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return os.Chmod(c.Mount, 0o755)
}

// launch starts a daemon that is not asked for again.
func (c *Cluster) launch(name string, args ...string) error {
	_, err := c.daemons.Start(name, args...)
	return err
}

// free is an address of this machine that no one has.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (c *Cluster) monitor(ctx context.Context) error {
	if err := c.daemons.Run(ctx, "ceph-mon", "--mkfs", "-i", "a", "--monmap", filepath.Join(c.dir, "monmap")); err != nil {
		return err
	}
	return c.launch("ceph-mon", "-f", "-i", "a")
}

// storage is what keeps bytes, and the manager, which counts them for statfs.
func (c *Cluster) storage(ctx context.Context) error {
	err := c.daemons.Run(ctx, "ceph", "osd", "create")
	if err == nil {
		err = c.launch("ceph-mgr", "-f", "-i", "a")
	}
	if err == nil {
		err = c.daemons.Run(ctx, "ceph-osd", "-i", "0", "--mkfs")
	}
	if err == nil {
		err = c.launch("ceph-osd", "-f", "-i", "0")
	}
	return err
}

func (c *Cluster) filesystem(ctx context.Context) error {
	for _, command := range [][]string{
		{"osd", "pool", "create", "metadata", "8"}, {"osd", "pool", "create", "data", "8"}, {"fs", "new", "berth", "metadata", "data"},
	} {
		if err := c.daemons.Run(ctx, "ceph", command...); err != nil {
			return err
		}
	}
	return c.launch("ceph-mds", "-f", "-i", "a")
}

// client mounts as soon as there is a metadata server, and waits until statfs
// knows the size.
func (c *Cluster) client(ctx context.Context) error {
	for {
		var err error
		if c.fuse, err = c.daemons.Start("ceph-fuse", "-f", c.Mount); err != nil {
			return err
		}
		if err := c.sized(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// sized ends with an error when the client has: it does not wait for a metadata
// server that was never there.
func (c *Cluster) sized(ctx context.Context) error {
	for {
		var st unix.Statfs_t
		if err := unix.Statfs(c.Mount, &st); err == nil && st.Type == unix.FUSE_SUPER_MAGIC && st.Blocks > 0 {
			return nil
		}
		if err := c.fuse.Ended(); err != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("its file system is not mounted, or has no size, after %v: %w", timeout, ctx.Err())
		}
	}
}

// Close unmounts and ends everything.
func (c *Cluster) Close() error {
	errs := []error{leftover.Unmount(c.Mount)}
	if c.fuse != nil {
		c.fuse.Wait(farewell)
	}
	c.daemons.Stop()
	errs = append(errs, remove(c.dir))
	if c.lock != nil {
		errs = append(errs, c.lock.Close())
	}
	return errors.Join(errs...)
}

// remove keeps out of what is mounted after all.
func remove(dir string) error {
	if err := os.Remove(filepath.Join(dir, mount)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.RemoveAll(dir)
}

// sweep removes what processes that are gone have left: their locks are free, and
// their daemons went with them.
func sweep() {
	leftover.Sweep(prefix, func(dir string) {
		if leftover.Unmount(filepath.Join(dir, mount)) == nil {
			_ = remove(dir)
		}
	})
}
