package vfolder

import (
	"context"
	"fmt"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// modelFolder returns an error if a folder of a model store project has another use than
// models, or gives members more than read access. Administrators of the project can write, as
// in every project.
func modelFolder(p *ent.Project, mode *vfolder.UsageMode, permission *access.FolderPermission) error {
	switch {
	case p.Type != project.TypeModelStore:
		return nil
	case mode != nil && *mode != vfolder.UsageModeModel:
		return problem.Invalid("usageMode", "project %s is a model store, and its folders are for models, not %s", p.Name, *mode).
			WithLimit(vfolder.UsageModeModel.String())
	case permission != nil && *permission != access.ReadOnly:
		return problem.Invalid("permission", "project %s is a model store: its members can only read, and its administrators can write", p.Name).
			WithLimit(string(access.ReadOnly))
	}
	return nil
}

// inModelStore sets the use of a new folder to models if the project is a model store.
func (w *folderRequest) inModelStore(p *ent.Project) error {
	if err := modelFolder(p, w.mode, w.permission); err != nil || p.Type != project.TypeModelStore {
		return err
	}
	mode, permission := vfolder.UsageModeModel, access.ReadOnly
	w.mode, w.permission = &mode, &permission
	return nil
}

// allowedIn applies the rule of modelFolder to an existing folder.
func (s *Service) allowedIn(ctx context.Context, f *ent.Vfolder, mode *vfolder.UsageMode, permission *access.FolderPermission) error {
	if f.ProjectID == nil || mode == nil && permission == nil {
		return nil
	}
	p, err := s.Client.Project.Get(viewer.SystemContext(ctx), *f.ProjectID)
	if err != nil {
		return fmt.Errorf("read project: %w", err)
	}
	return modelFolder(p, mode, permission)
}
