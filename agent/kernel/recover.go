package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime"
)

// Recover compares the records with the node: it adopts containers that belong to a record, ends
// kernels whose container is missing, and removes containers, namespaces and links of this agent
// that no record refers to.
func (m *Manager) Recover(ctx context.Context) error {
	if err := m.load(); err != nil {
		return err
	}
	found, err := m.cfg.Runtime.Containers(ctx)
	if err != nil {
		return fmt.Errorf("recover kernels: %w", err)
	}
	containers := map[string]runtime.Container{}
	for _, c := range found {
		containers[c.ID()] = c
	}
	for _, k := range m.List() {
		if k.ended() {
			continue
		}
		c := containers[containerID(k.rec.request)]
		delete(containers, containerID(k.rec.request))
		m.cfg.Logger.Info("kernel recovered", "kernel", k.ID, "phase", k.rec.state.Phase, "container", c != nil)
		m.lives.Go(func() { k.live(m.ctx, c) })
	}
	for _, c := range containers {
		m.cfg.Logger.Warn("container without a record removed", "container", c.ID(), "kernel", c.Labels()[runtime.LabelKernel])
		remove, cancel := context.WithTimeout(ctx, time.Minute)
		err = errors.Join(err, c.Remove(remove))
		cancel()
	}
	return errors.Join(err, m.cfg.Network.Sweep())
}

// load reads all records and allocates the devices of the live ones.
func (m *Manager) load() error {
	root := filepath.Join(m.cfg.Dir, "kernels")
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		text, err := os.ReadFile(filepath.Join(dir, recordFile))
		if os.IsNotExist(err) {
			// The agent was killed before the record was written, or the record was lost. Its
			// container is removed below.
			if err := errors.Join(m.removeDisk(e.Name()), os.RemoveAll(dir)); err != nil {
				return fmt.Errorf("remove a kernel without a record: %w", err)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("read record: %w", err)
		}
		if strings.Contains(e.Name(), ".unreadable-") {
			continue
		}
		rec, err := unmarshalRecord(text, m.keys)
		if err != nil || rec.request.KernelId != e.Name() {
			m.cfg.Logger.Error("record is unreadable and was renamed", "kernel", e.Name(), "error", err)
			if err := os.Rename(dir, fmt.Sprintf("%s.unreadable-%d", dir, time.Now().Unix())); err != nil {
				return err
			}
			continue
		}
		m.take(rec)
	}
	return nil
}

func (m *Manager) take(rec *record) {
	k := m.newKernel(*rec)
	close(k.begun)
	m.mu.Lock()
	m.kernels[k.ID] = k
	m.mu.Unlock()
	if rec.state.Phase == agentpb.KernelState_EXITED {
		close(k.done)
		return
	}
	if rec.stop != nil {
		k.once.Do(func() { close(k.stopping) })
	}
	m.cfg.Devices.Adopt(k.AllocationID(), k.Allocations())
	m.cfg.Devices.Remember(k.AllocationID(), k.Allocations(), rec.devices)
	if err := m.cfg.Network.Adopt(rec.network); err != nil {
		m.cfg.Logger.Error("network of a kernel not recovered", "kernel", k.ID, "error", err)
	}
}
