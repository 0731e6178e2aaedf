package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/report"
)

// Checks are what has to work for the agent to be ready: it has found its kernels again, a
// manager is connected, and containers can be started. A condition that closes the machine
// to new sessions is shown only.
func (a *Agent) Checks() []opsserver.Check {
	checks := []opsserver.Check{
		{Name: "kernels", Probe: func(context.Context) error { return a.available() }},
		{Name: "runtime", Probe: func(context.Context) error { return a.condition(report.RuntimeUnavailable) }},
		{Name: "machine", Optional: true, Probe: func(context.Context) error {
			var all error
			for _, kind := range []string{report.DiskPressure, report.InodePressure, report.MemoryPressure} {
				all = errors.Join(all, a.condition(kind))
			}
			return all
		}},
	}
	if a.node != nil {
		checks = append(checks, opsserver.Check{Name: "managers", Probe: func(context.Context) error {
			if len(a.node.Clients()) == 0 {
				return fmt.Errorf("no manager is connected: %w", errdefs.ErrUnavailable)
			}
			return nil
		}})
	}
	return checks
}

// condition returns why a condition of the machine holds, and nil if it does not or
// nothing is known yet.
func (a *Agent) condition(kind string) error {
	if a.available() != nil {
		return nil // the check of the kernels says so
	}
	for _, c := range a.monitor.List() {
		if c.Type == kind && c.Status {
			return fmt.Errorf("%s: %w", c.Reason, errdefs.ErrUnavailable)
		}
	}
	return nil
}
