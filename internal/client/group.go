package client

import (
	"context"
	"time"
)

// Group is a resource group: a partition of agents with an access list.
type Group struct {
	ID              string       `json:"id"`
	Name            string       `json:"name"`
	Description     string       `json:"description"`
	Active          bool         `json:"active"`
	Public          bool         `json:"public"`
	SessionTypes    []string     `json:"sessionTypes"`
	AllowedNetworks []string     `json:"allowedNetworks"`
	Strategy        string       `json:"strategy"`
	Order           string       `json:"order"`
	HoldAfter       int          `json:"holdAfter"` // seconds, -1 for never
	Split           string       `json:"split"`
	Topology        string       `json:"topology"`
	HalfLife        int          `json:"halfLife"` // seconds, as Lookback
	Lookback        int          `json:"lookback"`
	LostPolicy      string       `json:"lostPolicy"`
	LostAfter       int          `json:"lostAfter"` // seconds
	MaxAttempts     int          `json:"maxAttempts"`
	PendingTimeout  int          `json:"pendingTimeout"` // seconds, 0 forever
	Preemption      string       `json:"preemption"`
	PreemptionScope string       `json:"preemptionScope"`
	PreemptionAfter int          `json:"preemptionAfter"` // seconds
	CreatedAt       time.Time    `json:"createdAt"`
	Grants          []GroupGrant `json:"grants"`
	Agents          struct {
		TotalCount int `json:"totalCount"`
	} `json:"agents"`
}

// GroupGrant opens a group to one holder; all are nil for a keypair.
type GroupGrant struct {
	ID      string   `json:"id"`
	Domain  *Ref     `json:"domain"`
	Project *Ref     `json:"project"`
	User    *UserRef `json:"user"`
}

const groupFields = `fragment groupFields on ResourceGroup {
  id name description active public sessionTypes allowedNetworks strategy order holdAfter split topology halfLife lookback lostPolicy lostAfter maxAttempts pendingTimeout
  preemption preemptionScope preemptionAfter createdAt
  grants { id domain { id name } project { id name } user { id email } } agents { totalCount }
}`

var listGroups = define[struct {
	ResourceGroups connection[Group] `json:"resourceGroups"`
}](`query ResourceGroups($first: Int, $after: Cursor, $where: ResourceGroupWhereInput) {
  resourceGroups(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...groupFields } } pageInfo { hasNextPage endCursor }
  }
}`, groupFields)

// Groups lists resource groups in sight; name "" means all.
func (c *Client) Groups(ctx context.Context, name string) ([]Group, error) {
	return collect(0, vars{"where": nameIs(name)}, func(v vars) (connection[Group], error) {
		out, err := listGroups.run(ctx, c, v)
		return out.ResourceGroups, err
	})
}

type groupPayload struct {
	ResourceGroup Group `json:"resourceGroup"`
}

// CreateGroupInput is a new resource group.
type CreateGroupInput struct {
	Name         string   `json:"name"`
	Description  string   `json:"description,omitempty"`
	Public       bool     `json:"public"`
	SessionTypes []string `json:"sessionTypes,omitempty"`
	GroupOptions
}

// GroupOptions say how the scheduler treats a group's queue; what is nil is as it
// was. HoldAfter is in seconds, or -1 for never; HalfLife and Lookback
// are too, and LostAfter and PendingTimeout, 0 being forever.
type GroupOptions struct {
	Strategy  *string `json:"strategy,omitempty"`
	Order     *string `json:"order,omitempty"`
	HoldAfter *int    `json:"holdAfter,omitempty"`
	Split     *string `json:"split,omitempty"`
	Topology  *string `json:"topology,omitempty"`
	HalfLife  *int    `json:"halfLife,omitempty"`
	Lookback  *int    `json:"lookback,omitempty"`

	LostPolicy     *string `json:"lostPolicy,omitempty"`
	LostAfter      *int    `json:"lostAfter,omitempty"`
	MaxAttempts    *int    `json:"maxAttempts,omitempty"`
	PendingTimeout *int    `json:"pendingTimeout,omitempty"`

	Preemption      *string `json:"preemption,omitempty"`
	PreemptionScope *string `json:"preemptionScope,omitempty"`
	PreemptionAfter *int    `json:"preemptionAfter,omitempty"`

	AllowedNetworks *[]string `json:"allowedNetworks,omitempty"` // for sessions that start from then on
}

var createGroup = define[payload[groupPayload]](`mutation CreateResourceGroup($input: CreateResourceGroupInput!) {
  payload: createResourceGroup(input: $input) { resourceGroup { ...groupFields } }
}`, groupFields)

// CreateGroup makes a resource group.
func (c *Client) CreateGroup(ctx context.Context, in CreateGroupInput) (*Group, error) {
	out, err := change(ctx, c, createGroup, in)
	return &out.ResourceGroup, err
}

// UpdateGroupInput changes what is set.
type UpdateGroupInput struct {
	ID           string    `json:"id"`
	Name         *string   `json:"name,omitempty"`
	Description  *string   `json:"description,omitempty"`
	Active       *bool     `json:"active,omitempty"`
	Public       *bool     `json:"public,omitempty"`
	SessionTypes *[]string `json:"sessionTypes,omitempty"`
	GroupOptions
}

var updateGroup = define[payload[groupPayload]](`mutation UpdateResourceGroup($input: UpdateResourceGroupInput!) {
  payload: updateResourceGroup(input: $input) { resourceGroup { ...groupFields } }
}`, groupFields)

// UpdateGroup changes a group; what runs in it continues.
func (c *Client) UpdateGroup(ctx context.Context, in UpdateGroupInput) (*Group, error) {
	out, err := change(ctx, c, updateGroup, in)
	return &out.ResourceGroup, err
}

var deleteGroup = define[payload[idOf]](`mutation DeleteResourceGroup($input: DeleteResourceGroupInput!) {
  payload: deleteResourceGroup(input: $input) { id }
}`)

// DeleteGroup removes a group that has neither agents nor sessions.
func (c *Client) DeleteGroup(ctx context.Context, id string) error {
	_, err := change(ctx, c, deleteGroup, idOf{id})
	return err
}

// GroupHolder is a group and whom it is or is to be open to.
type GroupHolder struct {
	ResourceGroup string `json:"resourceGroup"`
	Holder
}

var grantGroup = define[payload[groupPayload]](`mutation GrantResourceGroup($input: GrantResourceGroupInput!) {
  payload: grantResourceGroup(input: $input) { resourceGroup { ...groupFields } }
}`, groupFields)

// GrantGroup opens a group to a holder.
func (c *Client) GrantGroup(ctx context.Context, in GroupHolder) (*Group, error) {
	out, err := change(ctx, c, grantGroup, in)
	return &out.ResourceGroup, err
}

var revokeGroup = define[payload[groupPayload]](`mutation RevokeResourceGroup($input: RevokeResourceGroupInput!) {
  payload: revokeResourceGroup(input: $input) { resourceGroup { ...groupFields } }
}`, groupFields)

// RevokeGroup closes a group to a holder.
func (c *Client) RevokeGroup(ctx context.Context, in GroupHolder) (*Group, error) {
	out, err := change(ctx, c, revokeGroup, in)
	return &out.ResourceGroup, err
}

// GroupAccess is a user or a project that may use a group, and by what.
type GroupAccess struct {
	ResourceGroup *Ref     `json:"resourceGroup"`
	User          *UserRef `json:"user"`
	Project       *Ref     `json:"project"`
	Via           []string `json:"via"`
}

var groupAccess = define[struct {
	ResourceGroupAccess struct {
		Access    []GroupAccess `json:"access"`
		EndCursor *string       `json:"endCursor"`
	} `json:"resourceGroupAccess"`
}](`query ResourceGroupAccess($resourceGroup: ID, $user: ID, $project: ID, $after: String) {
  resourceGroupAccess(resourceGroup: $resourceGroup, user: $user, project: $project, after: $after) {
    access { resourceGroup { id name } user { id email } project { id name } via } endCursor
  }
}`)

// GroupAccess tells who may use a group, or which groups a user or a project
// may use; by ids. Without any: which oneself may.
func (c *Client) GroupAccess(ctx context.Context, group, user, project string) ([]GroupAccess, error) {
	v := vars{}
	put(v, "resourceGroup", group)
	put(v, "user", user)
	put(v, "project", project)
	var all []GroupAccess
	for {
		out, err := groupAccess.run(ctx, c, v)
		if err != nil {
			return nil, err
		}
		all = append(all, out.ResourceGroupAccess.Access...)
		if out.ResourceGroupAccess.EndCursor == nil {
			return all, nil
		}
		v["after"] = *out.ResourceGroupAccess.EndCursor
	}
}
