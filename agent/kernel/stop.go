package kernel

import (
	"context"
	"time"

	"github.com/berthhq/berth/agent/agentpb"
)

// Terminate requests the end of a kernel and returns without waiting. A kernel without a record is
// reported as exited.
func (m *Manager) Terminate(_ context.Context, r *agentpb.TerminateKernelRequest) (*agentpb.KernelState, error) {
	if err := m.Fence(r.Epoch); err != nil {
		return nil, err
	}
	k, err := m.Get(r.KernelId)
	if err != nil {
		return &agentpb.KernelState{KernelId: r.KernelId, Phase: agentpb.KernelState_EXITED, Reason: NotFound, Message: err.Error()}, nil
	}
	if k.ended() {
		return k.State(), nil
	}
	grace := time.Duration(r.GraceMs) * time.Millisecond
	if r.GraceMs <= 0 {
		grace = defaultGrace
	}
	k.requestStop(stop{Reason: r.Reason, Grace: grace})
	return k.State(), nil
}

func (s *stop) deadline() time.Time { return s.At.Add(s.Grace) }

// stopRequest returns the stop request, or nil.
func (k *Kernel) stopRequest() *stop {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rec.stop
}

// requestStop saves the stop request and signals it to the kernel's life cycle. A later request
// replaces an earlier one only if it is more urgent.
func (k *Kernel) requestStop(s stop) {
	s.At = time.Now()
	k.mu.Lock()
	if k.rec.stop == nil || s.deadline().Before(k.rec.stop.deadline()) {
		if k.rec.stop != nil {
			s.Reason = k.rec.stop.Reason
		}
		k.rec.stop = &s
		if err := k.save(); err != nil {
			k.m.cfg.Logger.Error("record not written", "kernel", k.ID, "error", err)
		}
	}
	k.mu.Unlock()
	k.once.Do(func() { close(k.stopping) })
	select {
	case k.stopChanged <- struct{}{}:
	default:
	}
}
