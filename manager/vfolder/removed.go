package vfolder

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/jointoken"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// RemoveStorageProxyInput names a proxy as it named itself.
type RemoveStorageProxyInput struct{ Name string }

// RemoveStorageProxyPayload is the proxy that is no longer one; its id is for the trail.
type RemoveStorageProxyPayload struct {
	ID   uuid.UUID
	Name string
}

// RemoveStorageProxy takes a proxy out of the cluster: its certificate opens nothing any
// more. What it told of stays, volumes and their folders, for another proxy or for the
// same machine when it joins with a new token.
func (s *Service) RemoveStorageProxy(ctx context.Context, in RemoveStorageProxyInput) (*RemoveStorageProxyPayload, error) {
	if _, err := permit.Check(ctx, access.Delete, access.System, access.Object{}); err != nil {
		return nil, err
	}
	sys := viewer.SystemContext(ctx)
	row, err := s.client.StorageProxy.Query().Where(storageproxy.Name(in.Name)).Only(sys)
	if err != nil {
		return nil, permit.Missing(err, "storage proxy", "name")
	}
	if _, err := s.client.JoinToken.Delete().Where(joinOf(in.Name)...).Exec(sys); err != nil {
		return nil, fmt.Errorf("forget how storage proxy %s joined: %w", in.Name, err)
	}
	s.mu.Lock()
	p := s.proxies[in.Name]
	s.mu.Unlock()
	if p != nil {
		p.cut()
	}
	return &RemoveStorageProxyPayload{ID: row.ID, Name: row.Name}, nil
}

// Admit refuses a proxy that was removed, or that never joined: it is the hub's Admit for
// storage. What admits a proxy is the token that it joined with, kept as long as it may
// come back.
func (s *Service) Admit(ctx context.Context, name string) error {
	joined, err := s.client.JoinToken.Query().Where(joinOf(name)...).Exist(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("look how storage proxy %s joined: %w: %w", name, err, errdefs.ErrUnavailable)
	}
	if !joined {
		return fmt.Errorf("storage proxy %s was removed: %w", name, errdefs.ErrPermissionDenied)
	}
	return nil
}

func joinOf(name string) []predicate.JoinToken {
	return []predicate.JoinToken{jointoken.RoleEQ(jointoken.RoleStorage), jointoken.UsedBy(name)}
}
