package vfolder

import (
	"context"
	"fmt"
	"time"

	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/ent/volume"
)

// silence is how long a proxy may tell nothing before its volumes are not what it told
// last: it reports every 10 s.
const silence = 30 * time.Second

// silentEvery is the pause between two looks, and before the first: when there was no
// manager no proxy could tell anything, and the last is back after 10 s.
const silentEvery = 15 * time.Second

// markSilent makes the volumes of proxies that are gone unavailable, with the reason. A
// proxy that comes back, or another that serves them, says what they are.
func (s *Service) markSilent(ctx context.Context) error {
	lost, err := s.client.Volume.Query().
		Where(volume.HealthNEQ("unavailable"), volume.HasProxyWith(storageproxy.LastSeenAtLT(time.Now().Add(-silence)))).
		WithProxy().All(ctx)
	if err != nil {
		return fmt.Errorf("look for silent storage proxies: %w", err)
	}
	for _, v := range lost {
		p := v.Edges.Proxy
		why := fmt.Sprintf("its storage proxy %s has not been heard of since %s", p.Name, p.LastSeenAt.UTC().Format(time.RFC3339))
		n, err := s.client.Volume.Update().
			Where(volume.ID(v.ID), volume.HasProxyWith(storageproxy.ID(p.ID), storageproxy.LastSeenAt(p.LastSeenAt))).
			SetHealth("unavailable").SetHealthMessage(why).Save(ctx)
		if err != nil {
			return fmt.Errorf("mark volume %s unavailable: %w", v.Name, err)
		}
		if n > 0 {
			s.log.Warn("volume unavailable", "volume", v.Name, "reason", why)
		}
	}
	return nil
}
