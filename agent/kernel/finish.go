package kernel

import (
	"context"
	"fmt"
	"time"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/mount"
)

const (
	cleanTimeout = time.Minute // for one attempt; the shim alone can take 12 s
	cleanBackoff = 30 * time.Second
)

// finish frees all resources of the kernel, with retries, and only then reports the kernel as
// exited.
func (k *Kernel) finish(ctx context.Context, e end) {
	if e.at.IsZero() {
		e.at = time.Now()
	}
	k.over(e)
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, cleanBackoff) {
		err := k.clean(ctx)
		if err == nil {
			err = k.exited(e)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		k.m.cfg.Logger.Warn("kernel has ended, and its clean-up failed; retrying", "kernel", k.ID, "error", err)
		k.say(agentpb.KernelState_STOPPING, fmt.Sprintf("has ended, still cleaning up: %v", err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// over records when the process ended, so that a manager sees during a long clean-up that nothing
// runs.
func (k *Kernel) over(e end) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rec.state.ExitedUnixMs = max(e.at.UnixMilli(), k.rec.state.StartedUnixMs)
}

// clean can be repeated after any error. Devices are freed last, because processes can use them
// until the container is removed.
func (k *Kernel) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	if k.container != nil {
		if err := k.container.Remove(ctx); err != nil {
			return err
		}
	}
	k.awaitLog(ctx)
	if err := removeCgroup(ctx, k.CgroupPath()); err != nil {
		return err
	}
	if err := k.m.cfg.Network.Remove(k.attachment()); err != nil {
		return err
	}
	if err := k.m.cfg.Devices.Unprepare(ctx, k.AllocationID(), k.Allocations(), k.rec.devices); err != nil {
		return err
	}
	if err := (mount.Files{Dir: k.m.dir(k.ID)}).Remove(); err != nil {
		return err
	}
	return k.removeDisk()
}

func (k *Kernel) exited(e end) error {
	k.hold(nil)
	k.m.cfg.Devices.Release(k.AllocationID())
	err := k.change(func(s *agentpb.KernelState) {
		s.Phase, s.ExitCode, s.Reason, s.Message = agentpb.KernelState_EXITED, int32(e.code), e.reason, e.message
		// The start time is recorded after the start has returned. A short process can have ended
		// by then.
		s.ExitedUnixMs = max(e.at.UnixMilli(), s.StartedUnixMs)
	}, func() { close(k.done) })
	if err != nil {
		return err
	}
	k.m.cfg.Logger.Info("kernel exited", "kernel", k.ID, "session", k.rec.request.SessionId, "code", e.code, "reason", e.reason)
	return nil
}
