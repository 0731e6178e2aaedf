package client

import (
	"context"
)

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
