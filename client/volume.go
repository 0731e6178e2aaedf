package client

import (
	"context"
)

// Volumes lists the storage volumes.
func (c *Client) Volumes(ctx context.Context) ([]Volume, error) {
	out, err := queryVolumes(ctx, c)
	return out.Volumes, err
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

// SetVolumeGrant sets the permissions of a holder on a volume.
func (c *Client) SetVolumeGrant(ctx context.Context, in SetVolumeGrantInput) (*VolumeGrant, error) {
	out, err := setVolumeGrant(ctx, c, in)
	return &out.Payload.Grant, err
}

// RemoveVolumeGrant removes a grant by its id.
func (c *Client) RemoveVolumeGrant(ctx context.Context, grant string) error {
	_, err := removeVolumeGrant(ctx, c, RemoveVolumeGrantInput{ID: grant})
	return err
}

// VolumeDetails lists the volumes with the fields for administrators.
func (c *Client) VolumeDetails(ctx context.Context) ([]VolumeDetails, error) {
	out, err := queryVolumeDetails(ctx, c)
	return out.Volumes, err
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

// RemoveOrphan starts to permanently delete an orphaned folder or, with folder "", an orphaned
// quota scope.
func (c *Client) RemoveOrphan(ctx context.Context, volume, scope, folder string) (*Task, error) {
	out, err := removeOrphan(ctx, c, RemoveOrphanInput{Volume: volume, Scope: scope, Folder: folder})
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
