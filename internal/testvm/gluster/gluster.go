// Package gluster makes a real GlusterFS of one node for the time of a test or a
// demonstration: a server with one brick on btrfs, whose volume has quotas, and a
// client that has mounted it. The server is like another machine: it has namespaces
// of its own for network, mounts and processes, so that nothing of it is seen in this
// machine's directories, and all of it ends with the process that made it. It needs
// root, /dev/fuse and Debian's gluster packages; where one is missing Make says which.
package gluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/simulator/image"
	"github.com/berthhq/berth/internal/testvm/daemon"
	"github.com/berthhq/berth/internal/testvm/leftover"
)

// Volume is what the volume is called.
const Volume = "berth"

// Cluster is a GlusterFS that runs.
type Cluster struct {
	Mount   string // of the volume
	Gluster string // the program gluster, as the server has it
	dir     string
	lock    *os.File
	image   *image.Image
	daemons *daemon.Group
	server  *daemon.Process
	client  *daemon.Process
}

const (
	prefix = "berth-gluster-"
	mount  = "mount"

	// address is the server's; Gluster refuses those that begin with 127.
	address = "10.73.0.1"

	// timeout is for the start, on a machine that is busy: 5 s are enough on one
	// that is not.
	timeout = 2 * time.Minute
	// farewell is what the client has to end once it is unmounted, and the server
	// once its programs are killed.
	farewell = 10 * time.Second
)

// Make starts a server and mounts its volume. Its error is Unavailable where that
// cannot be done. What processes left that were killed is removed first.
func Make(ctx context.Context) (*Cluster, error) {
	if err := possible(); err != nil {
		return nil, err
	}
	leftover.Sweep(prefix, func(dir string) { _ = discard(dir) })
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, Mount: filepath.Join(dir, mount), Gluster: filepath.Join(dir, "gluster")}
	c.daemons = daemon.New(dir, append(os.Environ(), "LC_ALL=C"))
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("make gluster: %w", err), c.Close())
	}
	return c, nil
}

// possible says what is missing.
func possible() error {
	return daemon.Possible("gluster", "test-gluster", "gluster", "glusterd", "glusterfsd", "glusterfs")
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
	if c.image, err = image.Make(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{c.serve, c.volume, c.mount} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return os.Chmod(c.Mount, 0o755)
}

//go:embed server.sh
var server string

// serve starts the server's machine, and waits until it answers.
func (c *Cluster) serve(ctx context.Context) (err error) {
	c.server, err = c.daemons.Start("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", server, "server", address)
	if err != nil {
		return err
	}
	enter := fmt.Sprintf("#!/bin/sh\nexec nsenter %s %s %s gluster \"$@\"\n", c.network(), c.mounts(), c.processes())
	if err := os.WriteFile(c.Gluster, []byte(enter), 0o755); err != nil {
		return err
	}
	for {
		err := c.daemons.Run(ctx, c.Gluster, "pool", "list")
		if err == nil {
			return nil
		}
		if gone := c.server.Ended(); gone != nil {
			return gone
		}
		if err := wait(ctx, "its server does not answer", err); err != nil {
			return err
		}
	}
}

// network, mounts and processes are how nsenter enters the server's machine. unshare
// itself has stayed outside of the namespace of processes.
func (c *Cluster) network() string { return fmt.Sprintf("--net=/proc/%d/ns/net", c.server.PID) }
func (c *Cluster) mounts() string  { return fmt.Sprintf("--mount=/proc/%d/ns/mnt", c.server.PID) }
func (c *Cluster) processes() string {
	return fmt.Sprintf("--pid=/proc/%d/ns/pid_for_children", c.server.PID)
}

func (c *Cluster) volume(ctx context.Context) error {
	err := c.Do(ctx, "volume", "create", Volume, address+":"+filepath.Join(c.image.Mount, "brick"))
	if err == nil {
		err = c.Do(ctx, "volume", "start", Volume)
	}
	if err == nil {
		err = c.Quotas(ctx)
	}
	return err
}

// Quotas enables them.
func (c *Cluster) Quotas(ctx context.Context) error {
	if err := c.Do(ctx, "volume", "quota", Volume, "enable"); err != nil {
		return err
	}
	return c.Timeouts(ctx, "0")
}

// Timeouts sets how many seconds old the counts may be that writers are stopped by.
func (c *Cluster) Timeouts(ctx context.Context, seconds string) error {
	err := c.Do(ctx, "volume", "quota", Volume, "soft-timeout", seconds)
	if err == nil {
		err = c.Do(ctx, "volume", "quota", Volume, "hard-timeout", seconds)
	}
	return err
}

// mount starts the client: on this machine's mounts, and the server's network.
func (c *Cluster) mount(ctx context.Context) (err error) {
	c.client, err = c.daemons.Start("nsenter", c.network(), "glusterfs", "--no-daemon", "--log-file="+filepath.Join(c.dir, "client.log"),
		"--volfile-server="+address, "--volfile-id="+Volume, c.Mount)
	if err != nil {
		return err
	}
	for {
		var st unix.Statfs_t
		err := unix.Statfs(c.Mount, &st)
		if err == nil && st.Type == unix.FUSE_SUPER_MAGIC && st.Blocks > 0 {
			return nil
		}
		if gone := c.client.Ended(); gone != nil {
			return gone
		}
		if err := wait(ctx, "its volume is not mounted", err); err != nil {
			return err
		}
	}
}

// wait pauses between two looks, or ends with why that was not enough.
func wait(ctx context.Context, what string, why error) error {
	select {
	case <-time.After(50 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s: %w", what, ctx.Err()), why)
	}
}

// Do has the server's gluster do something, as its administrator would.
func (c *Cluster) Do(ctx context.Context, args ...string) error {
	return c.daemons.Run(ctx, c.Gluster, append([]string{"--mode=script"}, args...)...)
}

// Close unmounts and ends everything.
func (c *Cluster) Close() error {
	errs := []error{leftover.Unmount(c.Mount)}
	if c.client != nil {
		c.client.Wait(farewell)
	}
	if c.server != nil {
		c.halt()
	}
	c.daemons.Stop()
	if c.image != nil {
		errs = append(errs, c.image.Close())
	}
	errs = append(errs, discard(c.dir))
	if c.lock != nil {
		errs = append(errs, c.lock.Close())
	}
	return errors.Join(errs...)
}

// halt kills all that runs in the server's machine; then its first process ends, and
// with it the machine, which so has let go of the brick when halt returns.
func (c *Cluster) halt() {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := c.daemons.Run(ctx, "nsenter", c.mounts(), c.processes(), "sh", "-c", "kill -KILL -1"); err == nil {
		c.server.Wait(farewell)
	}
}

// discard keeps out of what is mounted after all.
func discard(dir string) error {
	at := filepath.Join(dir, mount)
	if err := leftover.Unmount(at); err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.RemoveAll(dir)
}
