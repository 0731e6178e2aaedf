package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// usedEvery is how exactly it is known when a folder was last used.
const usedEvery = time.Minute

// checkAutoMounts mounts the folders whose names begin with a dot, the owner's before
// those of the project, unless the request mounts something at the same path. It skips
// folders that the owner may not mount, as the request does not name them.
func (s *Service) checkAutoMounts(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	if in.AutoMount != nil && !*in.AutoMount {
		return nil
	}
	all, err := s.Client.Vfolder.Query().Where(vfolder.StatusEQ(vfolder.StatusReady), vfolder.PathNEQ(""), vfolder.NameHasPrefix("."),
		vfolder.Or(vfolder.OwnerID(v.User), vfolder.ProjectID(spec.project))).Order(vfolder.ByName()).All(ctx)
	if err != nil {
		return fmt.Errorf("find folders to mount: %w", err)
	}
	for _, own := range []bool{true, false} {
		for _, f := range all {
			target := "/home/work/" + f.Name
			taken := func(m mount) bool { return m.target == target || m.folder == f.ID }
			if (f.ProjectID == nil) != own || slices.ContainsFunc(spec.mounts, taken) || len(spec.mounts) >= maxMounts {
				continue
			}
			if permit.Inside(ctx, access.ReadFiles, f) != nil {
				continue
			}
			err := s.Volumes.Allow(ctx, f, access.VolumeMount)
			if errdefs.IsPermissionDenied(err) {
				continue
			}
			if err != nil {
				return err
			}
			readOnly := permit.Inside(ctx, access.WriteFiles, f) != nil || s.Volumes.Allow(ctx, f, access.VolumeUpload) != nil
			spec.mounts = append(spec.mounts, mount{folder: f.ID, target: target, readOnly: readOnly})
		}
	}
	return nil
}

// noteUse records the time at which folders were mounted, after the session was stored:
// the transaction that stores it has only shared locks on the folders.
func (s *Service) noteUse(ctx context.Context, spec *sessionSpec) {
	if len(spec.mounts) == 0 {
		return
	}
	ids := make([]uuid.UUID, len(spec.mounts))
	for i, m := range spec.mounts {
		ids[i] = m.folder
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return cmp.Compare(a.String(), b.String()) })
	t := clock.Now()
	stale := vfolder.Or(vfolder.LastUsedAtIsNil(), vfolder.LastUsedAtLT(t.Add(-usedEvery)))
	for _, one := range slices.Compact(ids) {
		err := s.Client.Vfolder.Update().Where(vfolder.ID(one), stale).SetLastUsedAt(t).Exec(viewer.SystemContext(ctx))
		if err != nil {
			s.Logger.WarnContext(ctx, "note the use of a folder", "folder", one, "error", err)
		}
	}
}
