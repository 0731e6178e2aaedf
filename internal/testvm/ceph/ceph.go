// Package ceph starts a real Ceph of one node for a test or a demonstration: a monitor, a manager,
// one OSD that stores everything in memory, a metadata server, and a client that has mounted its
// file system. They use loopback without authentication and a temporary directory, and end with the
// process that started them. It requires root, /dev/fuse and Debian's ceph packages; if one is
// missing, the error of Make names it.
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

// Size is the capacity of the file system, which uses memory as it is written.
const Size = 4 << 30

// Cluster is a running Ceph.
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

// farewell limits the wait for the client's exit after the unmount.
const farewell = 5 * time.Second

// timeout limits each step of the start on a busy machine. All steps together take 5 s on an idle
// one.
const timeout = 2 * time.Minute

// Make starts a cluster and mounts its file system. It returns Unavailable if this machine does not
// support it. It first removes the remains of killed processes.
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
	// The users of sessions must be able to enter the directory.
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

// launch starts a daemon that is stopped with the others.
func (c *Cluster) launch(name string, args ...string) error {
	_, err := c.daemons.Start(name, args...)
	return err
}

// free returns an unused address of this machine.
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

// storage starts the OSD and the manager, which computes the values of statfs.
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

// client mounts the file system once there is a metadata server, and waits until statfs returns the
// size.
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

// sized waits until statfs returns the size. It returns an error if the client exits, because the
// client does not wait for a missing metadata server.
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

// Close unmounts the file system and stops all programs.
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

// remove removes the directory without entering a file system that is still mounted.
func remove(dir string) error {
	if err := os.Remove(filepath.Join(dir, mount)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.RemoveAll(dir)
}

// sweep removes the remains of processes that have ended, whose locks are free. Their daemons ended
// with them.
func sweep() {
	leftover.Sweep(prefix, func(dir string) {
		if leftover.Unmount(filepath.Join(dir, mount)) == nil {
			_ = remove(dir)
		}
	})
}
