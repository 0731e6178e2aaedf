package kernel

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime"
)

// atOnce limits the commits of an agent: each reads and compresses all changed files of a kernel.
const atOnce = 2

// Commit sends the image of a running kernel to a registry.
func (m *Manager) Commit(ctx context.Context, r *agentpb.CommitKernelRequest, progress func(runtime.Progress)) (runtime.Committed, error) {
	if err := m.Fence(r.Epoch); err != nil {
		return runtime.Committed{}, err
	}
	k, err := m.Get(r.KernelId)
	if err != nil {
		return runtime.Committed{}, err
	}
	if present := k.rec.request.LaunchEpoch; r.LaunchEpoch != present {
		return runtime.Committed{}, fmt.Errorf("kernel %s: launch %d is not on this node, which has launch %d: %w", k.ID, r.LaunchEpoch, present, errdefs.ErrNotFound)
	}
	if r.Repository == "" {
		return runtime.Committed{}, fmt.Errorf("repository is empty: %w", errdefs.ErrInvalidArgument)
	}
	if !k.committing.TryLock() {
		return runtime.Committed{}, fmt.Errorf("another commit of kernel %s runs: %w", k.ID, errdefs.ErrUnavailable)
	}
	defer k.committing.Unlock()
	progress(runtime.Progress{Phase: "waiting"})
	select {
	case m.commits <- struct{}{}:
		defer func() { <-m.commits }()
	case <-ctx.Done():
		return runtime.Committed{}, ctx.Err()
	}
	return k.commit(ctx, r, progress)
}

func (k *Kernel) commit(ctx context.Context, r *agentpb.CommitKernelRequest, progress func(runtime.Progress)) (runtime.Committed, error) {
	c, err := k.Running()
	if err != nil {
		return runtime.Committed{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a kernel that ends takes its files with it
		select {
		case <-k.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	done, err := c.Commit(ctx, runtime.CommitSpec{
		Repository: r.Repository, PlainHTTP: r.PlainHttp, Username: r.Username, Password: r.Password,
		MountFrom: r.MountFrom, Layer: k.files().Disk(), MaxBytes: r.MaxBytes, Indexed: r.Indexed,
	}, progress)
	select {
	case <-k.stopping:
		if err != nil {
			return done, fmt.Errorf("kernel %s ended during the commit: %w", k.ID, errdefs.ErrFailedPrecondition)
		}
	default:
	}
	return done, err
}
