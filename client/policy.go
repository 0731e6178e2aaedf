package client

import (
	"context"
)

// Policies lists the resource policies that the viewer can see; name "" means all.
func (c *Client) Policies(ctx context.Context, name string) ([]Policy, error) {
	return collect(0, func(first *int, after string) (*queryResourcePoliciesResourcePoliciesResourcePolicyConnection, error) {
		out, err := queryResourcePolicies(ctx, c, first, after, nameIs(name))
		return &out.ResourcePolicies, err
	})
}

// CreatePolicy creates a resource policy.
func (c *Client) CreatePolicy(ctx context.Context, in CreateResourcePolicyInput) (*Policy, error) {
	out, err := createResourcePolicy(ctx, c, in)
	return &out.Payload.Policy, err
}

// UpdatePolicy changes a resource policy.
func (c *Client) UpdatePolicy(ctx context.Context, in UpdateResourcePolicyInput) (*Policy, error) {
	out, err := updateResourcePolicy(ctx, c, in)
	return &out.Payload.Policy, err
}

// DeletePolicy removes a policy that is not attached.
func (c *Client) DeletePolicy(ctx context.Context, id string) error {
	_, err := deleteResourcePolicy(ctx, c, DeleteResourcePolicyInput{ID: id})
	return err
}

// AttachPolicy attaches a policy and replaces the one that was attached there. Without a
// policy it only detaches, and returns nil.
func (c *Client) AttachPolicy(ctx context.Context, in AttachResourcePolicyInput) (*Attachment, error) {
	out, err := attachResourcePolicy(ctx, c, in)
	return out.Payload.Attachment, err
}

// DetachPolicy removes an attachment by its id.
func (c *Client) DetachPolicy(ctx context.Context, attachment string) error {
	_, err := detachResourcePolicy(ctx, c, DetachResourcePolicyInput{ID: attachment})
	return err
}

// Place selects limits: of a user, project or domain, on a resource group, by their ids.
type Place struct{ Domain, Project, User, ResourceGroup string }

// EffectiveLimits returns how much can still be used; the zero Place is the logged-in user.
func (c *Client) EffectiveLimits(ctx context.Context, at Place) ([]EffectiveLimit, error) {
	out, err := queryEffectiveLimits(ctx, c, at.Domain, at.Project, at.User, at.ResourceGroup)
	return out.EffectiveLimits, err
}

// PolicyByName returns the resource policy with a name.
func (c *Client) PolicyByName(ctx context.Context, name string) (*Policy, error) {
	out, err := queryResourcePolicyByName(ctx, c, name)
	if err == nil && out.ResourcePolicy == nil {
		return nil, notFound("resource policy", name)
	}
	return out.ResourcePolicy, err
}
