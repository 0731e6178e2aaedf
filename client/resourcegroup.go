package client

import "context"

// Groups lists the resource groups that the viewer can see; name "" means all.
func (c *Client) Groups(ctx context.Context, name string) ([]Group, error) {
	return collect(0, func(first *int, after string) (*queryResourceGroupsResourceGroupsResourceGroupConnection, error) {
		out, err := queryResourceGroups(ctx, c, first, after, nameIs(name))
		return &out.ResourceGroups, err
	})
}

// CreateGroup creates a resource group.
func (c *Client) CreateGroup(ctx context.Context, in CreateResourceGroupInput) (*Group, error) {
	out, err := createResourceGroup(ctx, c, in)
	return &out.Payload.ResourceGroup, err
}

// UpdateGroup changes a resource group; its sessions continue.
func (c *Client) UpdateGroup(ctx context.Context, in UpdateResourceGroupInput) (*Group, error) {
	out, err := updateResourceGroup(ctx, c, in)
	return &out.Payload.ResourceGroup, err
}

// DeleteGroup removes a resource group without agents and sessions.
func (c *Client) DeleteGroup(ctx context.Context, id string) error {
	_, err := deleteResourceGroup(ctx, c, DeleteResourceGroupInput{ID: id})
	return err
}

// GrantGroup gives a holder access to a resource group.
func (c *Client) GrantGroup(ctx context.Context, in GrantResourceGroupInput) (*Group, error) {
	out, err := grantResourceGroup(ctx, c, in)
	return &out.Payload.ResourceGroup, err
}

// RevokeGroup revokes the access of a holder to a resource group.
func (c *Client) RevokeGroup(ctx context.Context, in RevokeResourceGroupInput) (*Group, error) {
	out, err := revokeResourceGroup(ctx, c, in)
	return &out.Payload.ResourceGroup, err
}

// GroupAccess lists the users and projects with access to a group, or the groups that a user
// or project can use, by ids. Without any of them it lists the groups of the logged-in user.
func (c *Client) GroupAccess(ctx context.Context, group, user, project string) ([]GroupAccess, error) {
	return collect(0, func(first *int, after string) (*queryResourceGroupAccessResourceGroupAccessResourceGroupAccessConnection, error) {
		out, err := queryResourceGroupAccess(ctx, c, group, user, project, first, after)
		return &out.ResourceGroupAccess, err
	})
}

// GroupByName returns the resource group with a name.
func (c *Client) GroupByName(ctx context.Context, name string) (*Group, error) {
	out, err := queryResourceGroupByName(ctx, c, name)
	if err == nil && out.ResourceGroup == nil {
		return nil, notFound("resource group", name)
	}
	return out.ResourceGroup, err
}

// GroupShares returns the fair shares of a resource group that the viewer can see.
func (c *Client) GroupShares(ctx context.Context, group string) (*Shares, error) {
	out, err := queryResourceGroupShares(ctx, c, group)
	if err == nil && out.Node == nil {
		err = notFound("resource group", group)
	}
	return out.Node, err
}

// SetShareWeight sets the weight of a holder.
func (c *Client) SetShareWeight(ctx context.Context, in SetShareWeightInput) (*ShareWeight, error) {
	out, err := setShareWeight(ctx, c, in)
	return &out.Payload.ShareWeight, err
}

// DeleteShareWeight removes a weight by its id.
func (c *Client) DeleteShareWeight(ctx context.Context, id string) error {
	_, err := deleteShareWeight(ctx, c, DeleteShareWeightInput{ID: id})
	return err
}

// Presets lists the presets for all resource groups and those of group, with the time at which
// each could start in project. Both are ids.
func (c *Client) Presets(ctx context.Context, group, project string) ([]FittingPreset, error) {
	return collect(0, func(first *int, after string) (*queryResourcePresetsResourcePresetsResourcePresetConnection, error) {
		out, err := queryResourcePresets(ctx, c, group, project, first, after)
		return &out.ResourcePresets, err
	})
}

// CreatePreset creates a preset.
func (c *Client) CreatePreset(ctx context.Context, in CreateResourcePresetInput) (*Preset, error) {
	out, err := createResourcePreset(ctx, c, in)
	return &out.Payload.Preset, err
}

// UpdatePreset changes a preset.
func (c *Client) UpdatePreset(ctx context.Context, in UpdateResourcePresetInput) (*Preset, error) {
	out, err := updateResourcePreset(ctx, c, in)
	return &out.Payload.Preset, err
}

// DeletePreset removes a preset.
func (c *Client) DeletePreset(ctx context.Context, id string) error {
	_, err := deleteResourcePreset(ctx, c, DeleteResourcePresetInput{ID: id})
	return err
}
