package main

import (
	"context"
	"time"
)

// usable waits until this machine's agent has found its kernels after a restart and is
// reachable, because only then sessions can start.
func (p *platform) usable(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.agent.Ready():
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !p.manager.Reaches(p.host) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
