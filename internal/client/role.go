package client

import (
	"context"
	"time"
)

// Role is a named set of permissions that is granted on scopes.
type Role struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Allows      []RolePermission `json:"allows"`
	CreatedAt   time.Time        `json:"createdAt"`
	Grants      []RoleGrant      `json:"grants"`
}

// RolePermission is what a role allows on one kind of object.
type RolePermission struct {
	Entity     string   `json:"entity"`
	Operations []string `json:"operations"`
}

// RoleGrant is a role that a user holds somewhere.
type RoleGrant struct {
	ID      string  `json:"id"`
	Role    Ref     `json:"role"`
	User    UserRef `json:"user"`
	Scope   string  `json:"scope"`
	ScopeID *string `json:"scopeId"`
}

const (
	roleFields = `fragment roleFields on Role {
  id name description allows { entity operations } createdAt grants { ...grantFields }
}`
	grantFields = `fragment grantFields on RoleGrant { id role { id name } user { id email } scope scopeId }`
)

var listRoles = define[struct {
	Roles connection[Role] `json:"roles"`
}](`query Roles($first: Int, $after: Cursor, $where: RoleWhereInput) {
  roles(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...roleFields } } pageInfo { hasNextPage endCursor }
  }
}`, roleFields, grantFields)

// Roles lists custom roles in sight; name "" means all.
func (c *Client) Roles(ctx context.Context, name string) ([]Role, error) {
	return collect(0, vars{"where": nameIs(name)}, func(v vars) (connection[Role], error) {
		out, err := listRoles.run(ctx, c, v)
		return out.Roles, err
	})
}

type rolePayload struct {
	Role Role `json:"role"`
}

// CreateRoleInput is a new role.
type CreateRoleInput struct {
	Name        string           `json:"name"`
	Description string           `json:"description,omitempty"`
	Allows      []RolePermission `json:"allows"`
}

var createRole = define[payload[rolePayload]](`mutation CreateRole($input: CreateRoleInput!) {
  payload: createRole(input: $input) { role { ...roleFields } }
}`, roleFields, grantFields)

// CreateRole makes a role.
func (c *Client) CreateRole(ctx context.Context, in CreateRoleInput) (*Role, error) {
	out, err := change(ctx, c, createRole, in)
	return &out.Role, err
}

// UpdateRoleInput changes what is set; Allows replaces all.
type UpdateRoleInput struct {
	ID          string           `json:"id"`
	Name        *string          `json:"name,omitempty"`
	Description *string          `json:"description,omitempty"`
	Allows      []RolePermission `json:"allows,omitempty"`
}

var updateRole = define[payload[rolePayload]](`mutation UpdateRole($input: UpdateRoleInput!) {
  payload: updateRole(input: $input) { role { ...roleFields } }
}`, roleFields, grantFields)

// UpdateRole changes a role at once for all who hold it.
func (c *Client) UpdateRole(ctx context.Context, in UpdateRoleInput) (*Role, error) {
	out, err := change(ctx, c, updateRole, in)
	return &out.Role, err
}

var deleteRole = define[payload[idOf]](`mutation DeleteRole($input: DeleteRoleInput!) {
  payload: deleteRole(input: $input) { id }
}`)

// DeleteRole removes a role.
func (c *Client) DeleteRole(ctx context.Context, id string) error {
	_, err := change(ctx, c, deleteRole, idOf{id})
	return err
}

// GrantRoleInput gives a user a role; Scope is system, domain, project or
// object, and ScopeID the id there.
type GrantRoleInput struct {
	Role    string `json:"role"`
	User    string `json:"user"`
	Scope   string `json:"scope"`
	ScopeID string `json:"scopeId,omitempty"`
}

var grantRole = define[payload[struct {
	Grant RoleGrant `json:"grant"`
}]](`mutation GrantRole($input: GrantRoleInput!) {
  payload: grantRole(input: $input) { grant { ...grantFields } }
}`, grantFields)

// GrantRole gives a user a role on a scope.
func (c *Client) GrantRole(ctx context.Context, in GrantRoleInput) (*RoleGrant, error) {
	out, err := change(ctx, c, grantRole, in)
	return &out.Grant, err
}

var revokeRole = define[payload[rolePayload]](`mutation RevokeRole($input: RevokeRoleInput!) {
  payload: revokeRole(input: $input) { role { ...roleFields } }
}`, roleFields, grantFields)

// RevokeRole takes a grant away by its id.
func (c *Client) RevokeRole(ctx context.Context, grant string) (*Role, error) {
	out, err := change(ctx, c, revokeRole, idOf{grant})
	return &out.Role, err
}
