package vfolder

import (
	"context"

	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/internal/viewer"
)

// Elsewhere lists the base URLs of all storage proxies, also of those that are away
// now, as people reach them.
func (s *Service) Elsewhere(ctx context.Context) []string {
	urls, err := s.client.StorageProxy.Query().Select(storageproxy.FieldPublicURL).Strings(viewer.SystemContext(ctx))
	if err != nil {
		s.log.WarnContext(ctx, "list storage proxies", "error", err)
	}
	return urls
}
