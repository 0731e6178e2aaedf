package containerd

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/berthhq/berth/agent/runtime"
)

// container implements runtime.Container.
type container struct {
	runtime *Runtime
	id      string
	labels  map[string]string

	mu     sync.Mutex
	loaded client.Container // nil until it is needed
}

// undo removes a partly created container, also if the context was cancelled.
func (c *container) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return c.Remove(ctx)
}

func (c *container) ID() string                { return c.id }
func (c *container) Labels() map[string]string { return c.labels }

// record loads the record of the container that containerd keeps.
func (c *container) record(ctx context.Context) (client.Container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded == nil {
		loaded, err := c.runtime.client.LoadContainer(ctx, c.id)
		if err != nil {
			return nil, fmt.Errorf("container %s: %w", c.id, err)
		}
		c.loaded = loaded
	}
	return c.loaded, nil
}

// task loads the task, without opening files.
func (c *container) task(ctx context.Context) (client.Task, error) {
	record, err := c.record(ctx)
	if err != nil {
		return nil, err
	}
	t, err := record.Task(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("container %s: %w", c.ID(), err)
	}
	return t, nil
}

func (c *container) Start(ctx context.Context) error {
	step, cancel := context.WithTimeout(context.WithoutCancel(named(ctx)), stepTimeout)
	defer cancel()
	if _, err := c.runtime.client.TaskService().Start(step, &tasks.StartRequest{ContainerID: c.id}); err != nil {
		return fmt.Errorf("start container %s: %w", c.id, errgrpc.ToNative(err))
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
	record, err := c.record(ctx)
	if err == nil {
		err = record.Delete(ctx, client.WithSnapshotCleanup)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("delete container %s: %w", c.ID(), err)
	}
	if digest := c.labels[labelLazy]; digest != "" {
		c.runtime.releaseLazy(ctx, digest)
	}
	return nil
}
