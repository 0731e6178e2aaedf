package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/shareweight"
	"github.com/berthhq/berth/manager/group"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

func (r mutationResolver) SetShareWeight(ctx context.Context, input group.SetShareWeightInput) (*group.ShareWeightPayload, error) {
	return r.Groups.SetShareWeight(ctx, input)
}

func (r mutationResolver) DeleteShareWeight(ctx context.Context, input group.DeleteShareWeightInput) (*group.DeleteShareWeightPayload, error) {
	return r.Groups.DeleteShareWeight(ctx, input)
}

func (r resourceGroupResolver) ShareWeights(ctx context.Context, g *ent.ResourceGroup) ([]*ent.ShareWeight, error) {
	list, err := loaders(ctx).weights.Load(ctx, g.ID)
	if list == nil {
		list = []*ent.ShareWeight{}
	}
	return list, err
}

// loadWeights reads the weights that apply in groups, including those for all groups.
func (r *Resolver) loadWeights(ctx context.Context, groups []uuid.UUID) (map[uuid.UUID][]*ent.ShareWeight, error) {
	q, err := r.Client.ShareWeight.Query().Where(shareweight.Or(shareweight.ResourceGroupIDIn(groups...), shareweight.ResourceGroupIDIsNil())).
		Order(shareweight.ByCreatedAt(), shareweight.ByID()).CollectFields(ctx, "ShareWeight", "Node")
	if err != nil {
		return nil, err
	}
	q.Select(shareweight.FieldResourceGroupID) // in addition to the selected columns
	all, err := q.All(ctx)
	m := map[uuid.UUID][]*ent.ShareWeight{}
	for _, w := range all {
		for _, g := range groups {
			if w.ResourceGroupID == nil || *w.ResourceGroupID == g {
				m[g] = append(m[g], w)
			}
		}
	}
	return m, err
}

func (r resourceGroupResolver) ShareHolders(ctx context.Context, g *ent.ResourceGroup) ([]*plan.Holder, error) {
	list, err := loaders(ctx).shares.Load(ctx, g.ID)
	if list == nil {
		list = []*plan.Holder{}
	}
	return list, err
}

func (r shareHolderResolver) Domain(ctx context.Context, h *plan.Holder) (*ent.Domain, error) {
	if h.Domain == uuid.Nil {
		return nil, nil
	}
	return loaders(ctx).domains.Load(ctx, h.Domain)
}

func (r shareHolderResolver) Project(ctx context.Context, h *plan.Holder) (*ent.Project, error) {
	if h.Project == uuid.Nil {
		return nil, nil
	}
	return loaders(ctx).accessProjects.Load(ctx, h.Project)
}

func (r shareHolderResolver) User(ctx context.Context, h *plan.Holder) (*ent.User, error) {
	if h.Owner == uuid.Nil {
		return nil, nil
	}
	return loaders(ctx).accessUsers.Load(ctx, h.Owner)
}

func (r *Resolver) loadDomains(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.Domain, error) {
	q, err := r.Client.Domain.Query().Where(domain.IDIn(ids...)).CollectFields(ctx, "Domain", "Node")
	if err != nil {
		return nil, err
	}
	all, err := q.All(ctx)
	return byID(all, func(d *ent.Domain) uuid.UUID { return d.ID }), err
}
