package client

import (
	"context"
)

// Volumes lists the storage volumes.
func (c *Client) Volumes(ctx context.Context) ([]Volume, error) {
	return collect(0, func(first *int, after string) (*queryVolumesVolumesVolumeConnection, error) {
		out, err := queryVolumes(ctx, c, first, after)
		return &out.Volumes, err
	})
}

// VolumeGrants lists the grants of a volume by its id.
func (c *Client) VolumeGrants(ctx context.Context, volume string) ([]VolumeGrant, error) {
	out, err := queryVolumeGrants(ctx, c, volume)
	if err != nil {
		return nil, err
	}
	if out.Node == nil || out.Node.ID == "" {
		return nil, notFound("volume", volume)
	}
	return out.Node.Grants, nil
}

// GrantVolume sets the permissions of a holder on a volume.
func (c *Client) GrantVolume(ctx context.Context, in GrantVolumeInput) (*VolumeGrant, error) {
	out, err := grantVolume(ctx, c, in)
	return &out.Payload.Grant, err
}

// RevokeVolume removes a grant by its id.
func (c *Client) RevokeVolume(ctx context.Context, grant string) error {
	_, err := revokeVolume(ctx, c, RevokeVolumeInput{ID: grant})
	return err
}

// VolumeDetails lists the volumes with the fields for administrators.
func (c *Client) VolumeDetails(ctx context.Context) ([]VolumeDetails, error) {
	return collect(0, func(first *int, after string) (*queryVolumeDetailsVolumesVolumeConnection, error) {
		out, err := queryVolumeDetails(ctx, c, first, after)
		return &out.Volumes, err
	})
}

// VolumeOrphans looks for directories on a volume that the database does not know.
func (c *Client) VolumeOrphans(ctx context.Context, volume string) (*VolumeOrphans, error) {
	out, err := queryVolumeOrphans(ctx, c, volume)
	if err != nil {
		return nil, err
	}
	if out.Node == nil {
		return nil, notFound("volume", volume)
	}
	return &out.Node.Orphans, nil
}

// DeleteOrphan starts to permanently delete an orphaned folder or, with folder "", an orphaned
// quota scope.
func (c *Client) DeleteOrphan(ctx context.Context, volume, scope, folder string) (*Task, error) {
	out, err := deleteOrphan(ctx, c, DeleteOrphanInput{Volume: volume, Scope: scope, Folder: folder})
	return &out.Payload.Task, err
}

// QuotaScopes lists the quota scopes that the viewer can see or, with mine, only those of the
// viewer and their projects.
func (c *Client) QuotaScopes(ctx context.Context, mine bool) ([]QuotaScope, error) {
	return collect(0, func(first *int, after string) (*queryQuotaScopesQuotaScopesQuotaScopeConnection, error) {
		out, err := queryQuotaScopes(ctx, c, first, after, mine)
		return &out.QuotaScopes, err
	})
}

// SetQuotaScope sets the limits of a quota scope, and creates the scope if there is none.
func (c *Client) SetQuotaScope(ctx context.Context, in SetQuotaScopeInput) (*QuotaScope, error) {
	out, err := setQuotaScope(ctx, c, in)
	return &out.Payload.QuotaScope, err
}

// VolumeByName returns the volume with a name.
func (c *Client) VolumeByName(ctx context.Context, name string) (*Volume, error) {
	out, err := queryVolumeByName(ctx, c, name)
	if err == nil && out.Volume == nil {
		return nil, notFound("volume", name)
	}
	return out.Volume, err
}
