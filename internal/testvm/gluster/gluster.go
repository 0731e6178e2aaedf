// Package gluster starts a real GlusterFS of one node for a test or a demonstration: a server with
// one brick on btrfs, whose volume has quotas, and a client that has mounted it. The server has its
// own namespaces for network, mounts and processes, so that it leaves nothing in the host's
// directories, and ends with the process that started it. It requires root, /dev/fuse and Debian's
// gluster packages; if one is missing, the error of Make names it.
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

// Volume is the name of the volume.
const Volume = "berth"

// Cluster is a running GlusterFS.
type Cluster struct {
	Mount   string // of the volume
	Gluster string // the program gluster in the server's namespaces
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

	// address is the server's. Gluster refuses addresses that begin with 127.
	address = "10.73.0.1"

	// timeout limits the start on a busy machine. It takes 5 s on an idle one.
	timeout = 2 * time.Minute
	// farewell limits the wait for the client's exit after the unmount, and for the server's exit
	// after its programs were killed.
	farewell = 10 * time.Second
)

// Make starts a server and mounts its volume. It returns Unavailable if this machine does not
// support it. It first removes the remains of killed processes.
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

// possible returns an Unavailable error if something is missing.
func possible() error {
	return daemon.Possible("gluster", "test-gluster", "gluster", "glusterd", "glusterfsd", "glusterfs")
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

// serve starts the server and waits until it responds.
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

// network, mounts and processes return the options with which nsenter enters the server's
// namespaces. unshare itself is outside of the pid namespace.
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

// Quotas enables quotas of the volume.
func (c *Cluster) Quotas(ctx context.Context) error {
	if err := c.Do(ctx, "volume", "quota", Volume, "enable"); err != nil {
		return err
	}
	return c.Timeouts(ctx, "0")
}

// Timeouts sets the maximum age, in seconds, of the usage by which limits are enforced.
func (c *Cluster) Timeouts(ctx context.Context, seconds string) error {
	err := c.Do(ctx, "volume", "quota", Volume, "soft-timeout", seconds)
	if err == nil {
		err = c.Do(ctx, "volume", "quota", Volume, "hard-timeout", seconds)
	}
	return err
}

// mount starts the client in the host's mount namespace and the server's network namespace.
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

// wait pauses between two attempts. If the context has ended, it returns an error with the reason.
func wait(ctx context.Context, what string, why error) error {
	select {
	case <-time.After(50 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s: %w", what, ctx.Err()), why)
	}
}

// Do runs the server's gluster, as its administrator would.
func (c *Cluster) Do(ctx context.Context, args ...string) error {
	return c.daemons.Run(ctx, c.Gluster, append([]string{"--mode=script"}, args...)...)
}

// Close unmounts the volume and stops the server.
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

// halt kills all processes in the server's namespaces. Then its first process exits, which releases
// the brick before halt returns.
func (c *Cluster) halt() {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := c.daemons.Run(ctx, "nsenter", c.mounts(), c.processes(), "sh", "-c", "kill -KILL -1"); err == nil {
		c.server.Wait(farewell)
	}
}

// discard removes the directory without entering a file system that is still mounted.
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
