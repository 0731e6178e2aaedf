package storage

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/storage/volume"
)

// Checks returns the conditions under which the proxy is ready: a manager has sent the keys of
// tickets, and at least one volume is available. The check also lists the volumes that are not
// available.
func (p *Proxy) Checks() []opsserver.Check {
	checks := []opsserver.Check{
		{Name: "managers", Probe: func(context.Context) error {
			if p.keys.empty() {
				return fmt.Errorf("no manager has connected since the start: %w", errdefs.ErrUnavailable)
			}
			return nil
		}},
		{Name: "volumes", Probe: func(context.Context) error {
			var err error
			for _, v := range p.set.All() {
				if err = available(v.State()); err == nil {
					return nil
				}
			}
			return err
		}},
	}
	for _, v := range p.set.All() {
		checks = append(checks, opsserver.Check{
			Name: "volume/" + v.Name(), Optional: true, Probe: func(context.Context) error { return available(v.State()) },
		})
	}
	return checks
}

func available(s volume.State) error {
	if s.Health == volumepb.HealthReport_UNAVAILABLE {
		return fmt.Errorf("%s: %w", s.Message, errdefs.ErrUnavailable)
	}
	return nil
}
