package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/plugins/accelerator"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Unprepare undoes Prepare, also if Prepare was interrupted or never called. It does not wait for a
// plugin that is not running: that plugin receives the live allocations by Restore when it starts,
// and removes all others.
func (m *Manager) Unprepare(ctx context.Context, id string, allocations []*agentpb.Allocation, states map[string][]byte) error {
	var errs []error
	for key := range m.split(allocations) {
		a := allocation{key, id}
		err := m.answered(ctx, a)
		if err == nil {
			err = m.unprepare(ctx, m.owe(a, states[key]))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("unprepare devices of %s: %w", key, err))
			continue
		}
		if err := os.RemoveAll(m.work(key, id)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// answered waits until the plugin is no longer preparing the allocation.
func (m *Manager) answered(ctx context.Context, a allocation) error {
	m.mu.Lock()
	done, is := m.preparing[a]
	m.mu.Unlock()
	if !is {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("it has not answered to Prepare: %w", ctx.Err())
	}
}

// owe records that an allocation must be undone. This precedes the call, because a plugin that is
// just starting may have received the allocation as a live one.
func (m *Manager) owe(a allocation, state []byte) allocation {
	m.mu.Lock()
	defer m.mu.Unlock()
	// A device that was prepared beside one that failed is in no record.
	if state == nil {
		state = m.prepared[a].GetState()
	}
	if state == nil {
		state = m.owed[a].GetState() // of an attempt that failed
	}
	delete(m.prepared, a)
	m.owed[a] = &acceleratorpb.UnprepareRequest{AllocationId: a.id, State: state}
	return a
}

// unprepare calls the plugin if it is running.
func (m *Manager) unprepare(ctx context.Context, a allocation) error {
	p := m.plugin(a.plugin)
	if p == nil {
		return nil // no longer configured, or not admitted yet
	}
	c, err := p.host.Get(ctx)
	if err != nil {
		return ctx.Err()
	}
	return m.undo(ctx, c, a)
}

func (m *Manager) undo(ctx context.Context, c *accelerator.Client, a allocation) error {
	m.mu.Lock()
	req := m.owed[a]
	m.mu.Unlock()
	if req == nil {
		return nil
	}
	_, err := c.Unprepare(ctx, req)
	err = native(ctx, err)
	if errdefs.IsUnavailable(err) && ended(ctx, c) {
		return nil
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owed[a] == req {
		delete(m.owed, a)
	}
	return nil
}

// undoAgain is the interval of retries for a plugin that failed to undo an allocation.
const undoAgain = 10 * time.Second

// undoOwed sends a plugin that has started its outstanding Unprepare calls until all have
// succeeded.
func (m *Manager) undoOwed(ctx context.Context, c *accelerator.Client) {
	for list := m.debts(c); len(list) > 0; list = m.debts(c) {
		for _, a := range list {
			if err := m.undo(ctx, c, a); err != nil {
				m.cfg.Logger.Warn("allocation not undone", "plugin", a.plugin, "id", a.id, "error", err)
			}
		}
		if len(m.debts(c)) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(undoAgain):
		}
	}
}

func (m *Manager) debts(c *accelerator.Client) []allocation {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []allocation
	for a := range m.owed {
		if a.plugin == c.Description.Key {
			list = append(list, a)
		}
	}
	return list
}
