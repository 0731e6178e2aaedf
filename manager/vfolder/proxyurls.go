package vfolder

import (
	"context"

	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/internal/viewer"
)

// ProxyURLs returns the public base URLs of all storage proxies, including those that are not
// connected now.
func (s *Service) ProxyURLs(ctx context.Context) []string {
	urls, err := s.Client.StorageProxy.Query().Select(storageproxy.FieldPublicURL).Strings(viewer.SystemContext(ctx))
	if err != nil {
		s.Logger.WarnContext(ctx, "list storage proxies", "error", err)
	}
	return urls
}
