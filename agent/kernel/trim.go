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

// Limits on what an agent retains of ended kernels if no manager calls Forget.
const (
	DefaultEndedKernels  = 1000
	DefaultEndedLogBytes = 5 << 30
)

const (
	trimEvery = time.Minute
	// trimAfter is how long the number of ended kernels is not limited after the end of a kernel,
	// so that a manager that was disconnected can still read its exit code.
	trimAfter = time.Hour
)

// Trim keeps the records and logs of ended kernels within the configured limits until the context
// ends. Managers call Forget for ended kernels at their own pace; Trim is for an agent without a
// connection to a manager.
func (m *Manager) Trim(ctx context.Context) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		if err := m.trim(time.Now()); err != nil {
			m.cfg.Logger.Warn("remove remains of ended kernels", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// trim first removes the oldest logs that exceed the limit on bytes, then the oldest records that
// exceed the limit on their number.
func (m *Manager) trim(now time.Time) error {
	ended := m.endedKernels() // latest first
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
		m.cfg.Logger.Info("record of an ended kernel removed to free space", "kernel", k.ID, "limit", m.cfg.EndedKernels)
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

// sizeBelow returns the total size of the files in a directory, or 0 if it does not exist.
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

// droppedFile replaces the files of the log directory after the log was removed before its kernel.
const droppedFile = "log-removed"

func (k *Kernel) dropLog() error {
	if err := os.WriteFile(filepath.Join(k.m.dir(k.ID), droppedFile), nil, 0o600); err != nil {
		return err
	}
	if err := os.RemoveAll(k.LogDir()); err != nil {
		return fmt.Errorf("remove log of kernel %s: %w", k.ID, err)
	}
	k.m.cfg.Logger.Info("log of an ended kernel removed to free space", "kernel", k.ID, "limit", k.m.cfg.EndedLogBytes)
	return nil
}

// LogKept returns FailedPrecondition if the agent has removed the kernel's log.
func (k *Kernel) LogKept() error {
	if k.State().Phase != agentpb.KernelState_EXITED {
		return nil
	}
	if _, err := os.Stat(filepath.Join(k.m.dir(k.ID), droppedFile)); err == nil {
		return fmt.Errorf("the log was removed because the machine stores at most %d MiB of logs of ended sessions: %w",
			k.m.cfg.EndedLogBytes>>20, errdefs.ErrFailedPrecondition)
	}
	return nil
}
