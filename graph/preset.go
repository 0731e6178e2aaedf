package graph

import (
	"context"

	"github.com/google/uuid"
	"github.com/vikstrous/dataloadgen"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/resourcepreset"
	"github.com/berthhq/berth/manager/preset"
)

// ResourcePresets lists the presets for all resource groups, and those of the given one.
func (r queryResolver) ResourcePresets(ctx context.Context, resourceGroup *uuid.UUID, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.ResourcePresetOrder, where *ent.ResourcePresetWhereInput) (*ent.ResourcePresetConnection, error) {
	within := resourcepreset.ResourceGroupIDIsNil()
	if resourceGroup != nil {
		within = resourcepreset.Or(within, resourcepreset.ResourceGroupID(*resourceGroup))
	}
	return r.Client.ResourcePreset.Query().Where(within).
		Paginate(ctx, after, first, before, last, ent.WithResourcePresetOrder(orderBy), ent.WithResourcePresetFilter(where.Filter))
}

func (r resourcePresetResolver) Fit(ctx context.Context, p *ent.ResourcePreset, project, resourceGroup *uuid.UUID) (*preset.PresetFit, error) {
	return loaders(ctx).fits.Load(ctx, preset.Question{Preset: p.ID, Project: deref(project), Group: deref(resourceGroup)})
}

type fitLoader = dataloadgen.Loader[preset.Question, *preset.PresetFit]

// loadFits computes the fits of all presets of one place in a query from one snapshot.
func (r *Resolver) loadFits() *fitLoader {
	return dataloadgen.NewLoader(func(ctx context.Context, questions []preset.Question) ([]*preset.PresetFit, []error) {
		list := make([]*preset.PresetFit, len(questions))
		m, err := r.Presets.Fits(ctx, questions)
		if err != nil {
			return list, []error{err}
		}
		for i, q := range questions {
			list[i] = m[q]
		}
		return list, nil
	}, r.batchWait())
}

func (r mutationResolver) CreateResourcePreset(ctx context.Context, input preset.CreateResourcePresetInput) (*preset.ResourcePresetPayload, error) {
	return r.Presets.CreateResourcePreset(ctx, input)
}

func (r mutationResolver) UpdateResourcePreset(ctx context.Context, input preset.UpdateResourcePresetInput) (*preset.ResourcePresetPayload, error) {
	return r.Presets.UpdateResourcePreset(ctx, input)
}

func (r mutationResolver) DeleteResourcePreset(ctx context.Context, input preset.DeleteResourcePresetInput) (*preset.DeleteResourcePresetPayload, error) {
	return r.Presets.DeleteResourcePreset(ctx, input)
}
