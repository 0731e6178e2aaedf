package client

import (
	"context"
)

// Roles lists the custom roles that the viewer can see; name "" means all.
func (c *Client) Roles(ctx context.Context, name string) ([]Role, error) {
	return collect(0, func(first *int, after string) (*queryRolesRolesRoleConnection, error) {
		out, err := queryRoles(ctx, c, first, after, nameIs(name))
		return &out.Roles, err
	})
}

// CreateRole creates a role.
func (c *Client) CreateRole(ctx context.Context, in CreateRoleInput) (*Role, error) {
	out, err := createRole(ctx, c, in)
	return &out.Payload.Role, err
}

// UpdateRole changes a role at once for everyone who has it.
func (c *Client) UpdateRole(ctx context.Context, in UpdateRoleInput) (*Role, error) {
	out, err := updateRole(ctx, c, in)
	return &out.Payload.Role, err
}

// DeleteRole removes a role.
func (c *Client) DeleteRole(ctx context.Context, id string) error {
	_, err := deleteRole(ctx, c, DeleteRoleInput{ID: id})
	return err
}

// GrantRole gives a user a role on a scope.
func (c *Client) GrantRole(ctx context.Context, in GrantRoleInput) (*RoleGrant, error) {
	out, err := grantRole(ctx, c, in)
	return &out.Payload.Grant, err
}

// RevokeRole removes a grant of a role by its id.
func (c *Client) RevokeRole(ctx context.Context, grant string) (*Role, error) {
	out, err := revokeRole(ctx, c, RevokeRoleInput{ID: grant})
	return &out.Payload.Role, err
}

// RoleByName returns the role with a name.
func (c *Client) RoleByName(ctx context.Context, name string) (*Role, error) {
	out, err := queryRoleByName(ctx, c, name)
	if err == nil && out.Role == nil {
		return nil, notFound("role", name)
	}
	return out.Role, err
}
