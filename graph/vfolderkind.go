package graph

import (
	"context"
	"maps"
	"slices"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	entvfolder "github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/internal/viewer"
)

func (r vfolderResolver) Kind(ctx context.Context, f *ent.Vfolder) (model.VfolderKind, error) {
	v := viewer.From(ctx)
	_, shared := v.Shares[f.ID]
	switch {
	case f.ProjectID != nil:
		return model.VfolderKindProject, nil
	case f.OwnerID != nil && *f.OwnerID == v.User:
		return model.VfolderKindMine, nil
	case shared:
		return model.VfolderKindShared, nil
	}
	return model.VfolderKindOthers, nil
}

// Kind converts the filter to a condition that matches vfolderResolver.Kind.
func (r vfolderWhereInputResolver) Kind(ctx context.Context, where *ent.VfolderWhereInput, kind *model.VfolderKind) error {
	if kind != nil {
		where.AddPredicates(ofKind(viewer.From(ctx), *kind))
	}
	return nil
}

func ofKind(v *viewer.Viewer, kind model.VfolderKind) predicate.Vfolder {
	shared := slices.Collect(maps.Keys(v.Shares))
	users := entvfolder.And(entvfolder.ProjectIDIsNil(), entvfolder.OwnerIDNotNil(), entvfolder.OwnerIDNEQ(v.User))
	switch kind {
	case model.VfolderKindProject:
		return entvfolder.ProjectIDNotNil()
	case model.VfolderKindMine:
		return entvfolder.And(entvfolder.ProjectIDIsNil(), entvfolder.OwnerIDNotNil(), entvfolder.OwnerID(v.User))
	case model.VfolderKindShared:
		return entvfolder.And(users, entvfolder.IDIn(shared...))
	}
	return entvfolder.And(users, entvfolder.IDNotIn(shared...))
}
