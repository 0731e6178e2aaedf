package vfolder

import (
	"context"
	"fmt"
	"time"

	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/ent/volume"
)

// heartbeatTimeout is how long after the last report a proxy's volumes are marked unavailable.
// A proxy reports every 10 s.
const heartbeatTimeout = 30 * time.Second

// checkEvery is the pause between two checks, and before the first one: without a manager, no
// proxy could report, and all proxies reconnect within 10 s.
const checkEvery = 15 * time.Second

// markUnresponsive marks the volumes of proxies without a heartbeat as unavailable, with the
// reason. The next report of a proxy that serves them replaces this.
func (s *Service) markUnresponsive(ctx context.Context) error {
	lost, err := s.Client.Volume.Query().
		Where(volume.HealthNEQ("unavailable"), volume.HasProxyWith(storageproxy.LastSeenAtLT(time.Now().Add(-heartbeatTimeout)))).
		WithProxy().All(ctx)
	if err != nil {
		return fmt.Errorf("look for silent storage proxies: %w", err)
	}
	for _, v := range lost {
		p := v.Edges.Proxy
		why := fmt.Sprintf("its storage proxy %s has not been heard of since %s", p.Name, p.LastSeenAt.UTC().Format(time.RFC3339))
		n, err := s.Client.Volume.Update().
			Where(volume.ID(v.ID), volume.HasProxyWith(storageproxy.ID(p.ID), storageproxy.LastSeenAt(p.LastSeenAt))).
			SetHealth("unavailable").SetHealthMessage(why).Save(ctx)
		if err != nil {
			return fmt.Errorf("mark volume %s unavailable: %w", v.Name, err)
		}
		if n > 0 {
			s.Logger.Warn("volume unavailable", "volume", v.Name, "reason", why)
		}
	}
	return nil
}
