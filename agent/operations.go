package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/report"
)

// Checks returns the readiness checks: the agent has recovered its kernels, it is connected to a
// manager, and it can start containers. A condition that keeps new sessions away is shown but does
// not affect readiness.
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

// condition returns an error with the reason of a condition that is true, and nil if it is false or
// has not been checked yet.
func (a *Agent) condition(kind string) error {
	if a.available() != nil {
		return nil // the check of the kernels reports this
	}
	for _, c := range a.monitor.List() {
		if c.Type == kind && c.Status {
			return fmt.Errorf("%s: %w", c.Reason, errdefs.ErrUnavailable)
		}
	}
	return nil
}
