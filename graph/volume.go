package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/vfolder"
)

func (r volumeResolver) MyPermissions(ctx context.Context, vol *ent.Volume, project *uuid.UUID) ([]access.VolumePermission, error) {
	grants, err := loaders(ctx).volumeGrants.Load(ctx, vol.ID)
	if err != nil {
		return nil, err
	}
	v, in := viewer.From(ctx), uuid.Nil
	if project != nil && v.MemberOf(*project) {
		in = *project
	}
	return vfolder.Union(grants, v.Domain, in, v.User), nil
}

func (r volumeGrantResolver) Everybody(_ context.Context, g *ent.VolumeGrant) (bool, error) {
	return g.DomainID == nil && g.ProjectID == nil && g.UserID == nil, nil
}

func (r mutationResolver) SetVolumeGrant(ctx context.Context, input vfolder.SetVolumeGrantInput) (*vfolder.SetVolumeGrantPayload, error) {
	return r.Folders.SetVolumeGrant(ctx, input)
}

func (r mutationResolver) RemoveVolumeGrant(ctx context.Context, input vfolder.RemoveVolumeGrantInput) (*vfolder.RemoveVolumeGrantPayload, error) {
	return r.Folders.RemoveVolumeGrant(ctx, input)
}
