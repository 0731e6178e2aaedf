package vfolder

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// DeleteStorageProxyInput names a proxy.
type DeleteStorageProxyInput struct{ Name string }

// DeleteStorageProxyPayload is the removed proxy; its id is for the audit log.
type DeleteStorageProxyPayload struct {
	ID   uuid.UUID
	Name string
}

// DeleteStorageProxy removes a proxy from the cluster: its certificate is no longer accepted.
// Its volumes and their folders stay, for another proxy, or for the same machine after it has
// joined with a new token.
func (s *Service) DeleteStorageProxy(ctx context.Context, in DeleteStorageProxyInput) (*DeleteStorageProxyPayload, error) {
	if _, err := permit.Check(ctx, access.Delete, access.System, access.Object{}); err != nil {
		return nil, err
	}
	sys := viewer.SystemContext(ctx)
	row, err := s.Client.StorageProxy.Query().Where(storageproxy.Name(in.Name)).Only(sys)
	if err != nil {
		return nil, permit.Missing(err, "storage proxy", "name")
	}
	err = store.InTx(sys, s.Client, func(tx *ent.Tx) error {
		return s.Enrolments.Revoke(sys, tx, cluster.RoleStorage, in.Name)
	})
	if err != nil {
		return nil, err
	}
	s.Enrolments.Revoked(ctx)
	return &DeleteStorageProxyPayload{ID: row.ID, Name: row.Name}, nil
}
