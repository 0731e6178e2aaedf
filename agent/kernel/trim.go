package kernel

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
)

// What an agent keeps of ended kernels when no manager asks it to forget them.
const (
	DefaultEndedKernels  = 1000
	DefaultEndedLogBytes = 5 << 30
)

const (
	trimEvery = time.Minute
	// trimAfter is how long the end of a kernel is safe from the limit on their
	// number: a manager that was away for a while still learns the exit code.
	trimAfter = time.Hour
)

// Trim keeps what is left of ended kernels within the agent's limits until the
// context ends. Managers ask for the same by Forget, at their own pace; this is for
// an agent that they do not reach.
func (m *Manager) Trim(ctx context.Context) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		if err := m.trim(time.Now()); err != nil {
			m.cfg.Logger.Warn("remove what is left of ended kernels", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// trim keeps the logs of the kernels that ended last, as many as there is room for,
// and then removes the records of those that ended first.
func (m *Manager) trim(now time.Time) error {
	ended := m.endedKernels() // the latest first
	total := int64(0)
	for _, k := range ended {
		size, err := sizeBelow(k.LogDir())
		if err != nil {
			return err
		}
		if total += size; size > 0 && total > m.cfg.EndedLogBytes {
			if err := k.dropLog(); err != nil {
				return err
			}
		}
	}
	for _, k := range ended[min(m.cfg.EndedKernels, len(ended)):] {
		if now.Sub(k.endedAt()) < trimAfter {
			continue
		}
		m.mu.Lock()
		err := m.remove(k)
		m.mu.Unlock()
		if err != nil {
			return err
		}
		m.cfg.Logger.Info("record of an ended kernel removed for want of room", "kernel", k.ID, "limit", m.cfg.EndedKernels)
	}
	return nil
}

func (m *Manager) endedKernels() []*Kernel {
	ended := slices.DeleteFunc(m.List(), func(k *Kernel) bool { return !k.ended() })
	at := make(map[*Kernel]time.Time, len(ended))
	for _, k := range ended {
		at[k] = k.endedAt()
	}
	slices.SortFunc(ended, func(a, b *Kernel) int { return cmp.Or(at[b].Compare(at[a]), cmp.Compare(a.ID, b.ID)) })
	return ended
}

func (k *Kernel) endedAt() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.UnixMilli(k.rec.state.ExitedUnixMs)
}

// sizeBelow sums the sizes of the files in a directory, which may not exist.
func sizeBelow(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return ignoreMissing(err)
	})
	return sum, err
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// droppedFile takes the place of the log directory's files when the log was removed
// before its kernel.
const droppedFile = "log-removed"

func (k *Kernel) dropLog() error {
	if err := os.WriteFile(filepath.Join(k.m.dir(k.ID), droppedFile), nil, 0o600); err != nil {
		return err
	}
	if err := os.RemoveAll(k.LogDir()); err != nil {
		return fmt.Errorf("remove log of kernel %s: %w", k.ID, err)
	}
	k.m.cfg.Logger.Info("log of an ended kernel removed for want of room", "kernel", k.ID, "limit", k.m.cfg.EndedLogBytes)
	return nil
}

// LogKept returns FailedPrecondition when the agent has removed the kernel's log.
func (k *Kernel) LogKept() error {
	if k.State().Phase != agentpb.KernelState_EXITED {
		return nil
	}
	if _, err := os.Stat(filepath.Join(k.m.dir(k.ID), droppedFile)); err == nil {
		return fmt.Errorf("the log was removed because the machine keeps no more than %d MiB of logs of ended sessions: %w",
			k.m.cfg.EndedLogBytes>>20, errdefs.ErrFailedPrecondition)
	}
	return nil
}
