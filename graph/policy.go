package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/policy"
)

func (r queryResolver) ResourcePolicies(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.ResourcePolicyOrder, where *ent.ResourcePolicyWhereInput) (*ent.ResourcePolicyConnection, error) {
	return r.Client.ResourcePolicy.Query().Paginate(ctx, after, first, before, last, ent.WithResourcePolicyOrder(orderBy), ent.WithResourcePolicyFilter(where.Filter))
}

func (r queryResolver) EffectiveLimits(ctx context.Context, domain, project, user, resourceGroup *uuid.UUID) ([]*policy.EffectiveLimit, error) {
	return r.Policies.EffectiveLimits(ctx, domain, project, user, resourceGroup)
}

func (r mutationResolver) CreateResourcePolicy(ctx context.Context, input policy.CreateResourcePolicyInput) (*policy.ResourcePolicyPayload, error) {
	return r.Policies.CreateResourcePolicy(ctx, input)
}

func (r mutationResolver) UpdateResourcePolicy(ctx context.Context, input policy.UpdateResourcePolicyInput) (*policy.ResourcePolicyPayload, error) {
	return r.Policies.UpdateResourcePolicy(ctx, input)
}

func (r mutationResolver) DeleteResourcePolicy(ctx context.Context, input policy.DeleteResourcePolicyInput) (*policy.DeleteResourcePolicyPayload, error) {
	return r.Policies.DeleteResourcePolicy(ctx, input)
}

func (r mutationResolver) AttachResourcePolicy(ctx context.Context, input policy.AttachResourcePolicyInput) (*policy.AttachResourcePolicyPayload, error) {
	return r.Policies.AttachResourcePolicy(ctx, input)
}

func (r mutationResolver) DetachResourcePolicy(ctx context.Context, input policy.DetachResourcePolicyInput) (*policy.DetachResourcePolicyPayload, error) {
	return r.Policies.DetachResourcePolicy(ctx, input)
}
