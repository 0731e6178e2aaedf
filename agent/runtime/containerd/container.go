package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/runtime"
)

// container implements runtime.Container.
type container struct {
	runtime   *Runtime
	container client.Container
	labels    map[string]string
	made      client.Task // set by Create for Start; nil in a recovered container
}

// Create creates the snapshot, the container and the task. On an error it removes them again.
func (r *Runtime) Create(ctx context.Context, s runtime.Spec) (runtime.Container, error) {
	ctx = named(ctx)
	binary, ok := r.cfg.Class[orRunc(s.Class)]
	if !ok {
		return nil, fmt.Errorf("runtime class %q is not configured on this node: %w", s.Class, errdefs.ErrFailedPrecondition)
	}
	img, err := r.client.GetImage(ctx, s.Image)
	if errdefs.IsNotFound(err) {
		return nil, fmt.Errorf("image %s is not on this node: %w", s.Image, errdefs.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Image, err)
	}
	parsed, err := r.parse(ctx, img)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{runtime.LabelAgent: r.cfg.Agent}
	for k, v := range s.Labels {
		labels[k] = v
	}
	made, err := r.client.NewContainer(ctx, s.ID,
		client.WithContainerLabels(labels),
		client.WithRuntime(r.cfg.Shim, &options.Options{
			BinaryName: binary, Root: filepath.Join(r.cfg.Dir, "runc"),
		}),
		snapshot(img.Name(), parsed.parent),
		client.WithNewSpec(r.build(s), own(s.Owned)),
	)
	if err != nil {
		r.dropSnapshot(ctx, s.ID)
		return nil, fmt.Errorf("create container %s: %w", s.ID, err)
	}
	c := &container{runtime: r, container: made, labels: labels}
	root, err := r.layer(ctx, s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writable layer of %s: %w", s.ID, err), c.undo(ctx))
	}
	if err := c.newTask(ctx, cio.BinaryIO(r.cfg.Runner, map[string]string{"log": s.Log.String()}), root...); err != nil {
		return nil, errors.Join(fmt.Errorf("create task of %s: %w", s.ID, err), c.undo(ctx))
	}
	if err := c.findFolders(ctx, s); err != nil {
		return nil, errors.Join(err, c.undo(ctx))
	}
	return c, nil
}

// stepTimeout limits a step that must not be interrupted. It normally takes a tenth of a second.
const stepTimeout = 30 * time.Second

// newTask creates the task, and then returns the error of a context that was cancelled during the
// creation. It does not cancel the creation itself: a shim that receives create and shutdown
// together may handle the shutdown first and never exit.
func (c *container) newTask(ctx context.Context, logger cio.Creator, opts ...client.NewTaskOpts) error {
	step, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	made, err := c.container.NewTask(step, logger, opts...)
	if err != nil {
		return err
	}
	c.made = made
	return ctx.Err()
}

func orRunc(class string) string {
	if class == "" {
		return "runc"
	}
	return class
}

// snapshot adds a writable layer on top of the image's layers.
func snapshot(image, parent string) client.NewContainerOpts {
	return func(ctx context.Context, c *client.Client, rec *containers.Container) error {
		if _, err := c.SnapshotService(snapshotter).Prepare(ctx, rec.ID, parent); err != nil {
			return fmt.Errorf("prepare snapshot: %w", err)
		}
		rec.Snapshotter, rec.SnapshotKey, rec.Image = snapshotter, rec.ID, image
		return nil
	}
}

// own changes the owner of host directories to the user in the spec.
func own(dirs []string) oci.SpecOpts {
	return func(_ context.Context, _ oci.Client, _ *containers.Container, spec *oci.Spec) error {
		for _, dir := range dirs {
			if err := os.Chown(dir, int(spec.Process.User.UID), int(spec.Process.User.GID)); err != nil {
				return err
			}
		}
		return nil
	}
}

// dropSnapshot removes the snapshot of a failed NewContainer, unless it belongs to an existing
// container with the same id.
func (r *Runtime) dropSnapshot(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := r.client.ContainerService().Get(ctx, id); !errdefs.IsNotFound(err) {
		return
	}
	if err := r.client.SnapshotService(snapshotter).Remove(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		r.cfg.Logger.Warn("snapshot left behind", "container", id, "error", err)
	}
}

// undo removes a partly created container, also if the context was cancelled.
func (c *container) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return c.Remove(ctx)
}

func (c *container) ID() string                { return c.container.ID() }
func (c *container) Labels() map[string]string { return c.labels }

// task loads the task, without opening files.
func (c *container) task(ctx context.Context) (client.Task, error) {
	t, err := c.container.Task(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("container %s: %w", c.ID(), err)
	}
	return t, nil
}

func (c *container) Start(ctx context.Context) error {
	ctx = named(ctx)
	t := c.made
	if t == nil {
		var err error
		if t, err = c.task(ctx); err != nil {
			return err
		}
	}
	step, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	if err := t.Start(step); err != nil {
		return fmt.Errorf("start container %s: %w", c.ID(), err)
	}
	return nil
}

func (c *container) State(ctx context.Context) (runtime.State, error) {
	ctx = named(ctx)
	t, err := c.task(ctx)
	if errdefs.IsNotFound(err) {
		return runtime.State{Phase: runtime.Gone}, nil
	}
	if err != nil {
		return runtime.State{}, err
	}
	status, err := t.Status(ctx)
	switch {
	case errdefs.IsNotFound(err):
		return runtime.State{Phase: runtime.Gone}, nil
	case err != nil:
		return runtime.State{}, fmt.Errorf("state of container %s: %w", c.ID(), err)
	}
	switch status.Status {
	case client.Created:
		return runtime.State{Phase: runtime.Created, PID: int(t.Pid())}, nil
	case client.Running, client.Paused, client.Pausing:
		return runtime.State{Phase: runtime.Running, PID: int(t.Pid())}, nil
	case client.Stopped:
		return runtime.State{Phase: runtime.Exited, Exit: runtime.Exit{Code: int(status.ExitStatus), Time: status.ExitTime}}, nil
	}
	return runtime.State{Phase: runtime.Gone}, nil
}

// Wait survives restarts of containerd, because the shim keeps the exit code.
func (c *container) Wait(ctx context.Context) (runtime.Exit, error) {
	ctx = named(ctx)
	for {
		exit, err := c.waitOnce(ctx)
		if err == nil || errdefs.IsNotFound(err) || ctx.Err() != nil {
			return exit, err
		}
		c.runtime.cfg.Logger.Debug("wait again", "container", c.ID(), "error", err)
		select {
		case <-ctx.Done():
			return runtime.Exit{}, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (c *container) waitOnce(ctx context.Context) (runtime.Exit, error) {
	t, err := c.task(ctx)
	if err != nil {
		return runtime.Exit{}, err
	}
	ended, err := t.Wait(ctx)
	if err != nil {
		return runtime.Exit{}, err
	}
	select {
	case <-ctx.Done():
		return runtime.Exit{}, ctx.Err()
	case status := <-ended:
		code, at, err := status.Result()
		return runtime.Exit{Code: int(code), Time: at}, err
	}
}

func (c *container) Kill(ctx context.Context, signal syscall.Signal) error {
	ctx = named(ctx)
	t, err := c.task(ctx)
	if err != nil {
		return err
	}
	if err := t.Kill(ctx, signal); err != nil {
		return fmt.Errorf("signal %d to container %s: %w", signal, c.ID(), err)
	}
	return nil
}

// Remove kills and deletes the task, then deletes the container and its snapshot.
func (c *container) Remove(ctx context.Context) error {
	ctx = named(ctx)
	t, err := c.task(ctx)
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	if err == nil {
		if _, err := t.Delete(ctx, client.WithProcessKill); err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("delete task of %s: %w", c.ID(), err)
		}
	}
	if err := c.container.Delete(ctx, client.WithSnapshotCleanup); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("delete container %s: %w", c.ID(), err)
	}
	return nil
}
