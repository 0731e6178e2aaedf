package clustertest

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/managertest"
)

// CreatePolicy creates a resource policy as a superadmin and attaches it to a user.
func (c *Cluster) CreatePolicy(t *testing.T, u *ent.User, name string, limits managertest.Vars) (id uuid.UUID) {
	t.Helper()
	limits["name"] = name
	root := c.Manager.As(t, c.Superadmin)
	var made struct {
		CreateResourcePolicy struct{ Policy struct{ ID uuid.UUID } }
	}
	root.Must(t, `mutation($in: CreateResourcePolicyInput!) { createResourcePolicy(input: $in) { policy { id } } }`, managertest.Vars{"in": limits}, &made)
	id = made.CreateResourcePolicy.Policy.ID
	root.Must(t, `mutation($p: ID!, $u: ID!) { attachResourcePolicy(input: {policy: $p, user: $u}) { attachment { id } } }`,
		managertest.Vars{"p": id, "u": u.ID}, nil)
	return id
}

// UpdatePolicy changes the limits of a resource policy.
func (c *Cluster) UpdatePolicy(t *testing.T, id uuid.UUID, limits managertest.Vars) {
	t.Helper()
	limits["id"] = id
	c.Manager.As(t, c.Superadmin).Must(t, `mutation($in: UpdateResourcePolicyInput!) { updateResourcePolicy(input: $in) { policy { id } } }`, managertest.Vars{"in": limits}, nil)
}

// UpdateGroup changes options of the default resource group.
func (c *Cluster) UpdateGroup(t *testing.T, options managertest.Vars) {
	t.Helper()
	options["id"] = c.Group.ID
	c.Manager.As(t, c.Superadmin).Must(t, `mutation($in: UpdateResourceGroupInput!) { updateResourceGroup(input: $in) { resourceGroup { id } } }`,
		managertest.Vars{"in": options}, nil)
}
