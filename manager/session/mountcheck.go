package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session/syntax"
)

// checkMounts finds the folders that a session mounts, which its owner must be allowed to mount.
func (s *Service) checkMounts(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	if len(in.Mounts) > maxMounts {
		return problem.Invalid("mounts", "has %d folders, which is too many", len(in.Mounts)).WithLimit(fmt.Sprint(maxMounts))
	}
	seen := map[string]bool{}
	for i, m := range in.Mounts {
		field := fmt.Sprintf("mounts[%d]", i)
		f, err := s.folder(ctx, v, spec, field+".vfolder", m.Vfolder)
		if err != nil {
			return err
		}
		if f == nil {
			return problem.NotFound("folder " + m.Vfolder).WithField(field + ".vfolder")
		}
		readOnly, err := readOnly(ctx, field, f, m.ReadOnly)
		if err != nil {
			return err
		}
		need := []access.VolumePermission{access.VolumeMount}
		if !readOnly {
			need = append(need, access.VolumeUpload) // a session can fill a folder that it can write
		}
		if err := s.Volumes.Allow(ctx, f, need...); err != nil {
			return err
		}
		out := mount{folder: f.ID, target: "/home/work/" + f.Name, readOnly: readOnly, readOnlyWanted: m.ReadOnly != nil && *m.ReadOnly}
		if m.Target != nil && *m.Target != "" {
			out.target = *m.Target
		}
		if err := syntax.Target(field+".target", out.target); err != nil {
			return err
		}
		if seen[out.target] {
			return problem.Invalid(field+".target", "%s is mounted twice", out.target)
		}
		seen[out.target] = true
		if m.Subpath != nil && *m.Subpath != "" {
			out.subpath = path.Clean(*m.Subpath)
			if path.IsAbs(out.subpath) || strings.ContainsRune(out.subpath, 0) || len(out.subpath) > 4096 || out.subpath == ".." || strings.HasPrefix(out.subpath, "../") {
				return problem.Invalid(field+".subpath", "must be below the folder")
			}
		}
		spec.mounts = append(spec.mounts, out)
	}
	return nil
}

// readOnly reports whether a folder is mounted read-only: if the request wants that, or
// the viewer may only read the folder.
func readOnly(ctx context.Context, field string, f *ent.Vfolder, want *bool) (bool, error) {
	if err := permit.Inside(ctx, access.ReadFiles, f); err != nil {
		return false, err
	}
	if want != nil && *want {
		return true, nil
	}
	if permit.Inside(ctx, access.WriteFiles, f) == nil {
		return false, nil
	}
	if want != nil {
		return false, problem.Forbidden("you may only read folder %s", f.Name).WithField(field + ".readOnly")
	}
	return true, nil
}

// folder finds a ready folder by ID or name; nil: there is none. If several have the name,
// the viewer's own comes first, then the project's, then those shared with the viewer.
func (s *Service) folder(ctx context.Context, v *viewer.Viewer, spec *sessionSpec, field, ref string) (*ent.Vfolder, error) {
	// A folder without a path does not exist yet; an empty path would be the volume's root.
	q := s.Client.Vfolder.Query().Where(vfolder.StatusEQ(vfolder.StatusReady), vfolder.PathNEQ(""))
	if id, err := uuid.Parse(ref); err == nil {
		q.Where(vfolder.ID(id))
	} else {
		q.Where(vfolder.Name(ref))
	}
	shared := slices.Collect(maps.Keys(v.Shares))
	q.Where(vfolder.Or(vfolder.OwnerID(v.User), vfolder.ProjectID(spec.project), vfolder.IDIn(shared...)))
	all, err := q.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find folder %s: %w", ref, err)
	}
	rank := func(f *ent.Vfolder) int {
		switch {
		case f.OwnerID != nil && *f.OwnerID == v.User:
			return 0
		case f.ProjectID != nil && *f.ProjectID == spec.project:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b *ent.Vfolder) int { return rank(a) - rank(b) })
	if len(all) == 0 {
		return nil, nil
	}
	if len(all) > 1 && rank(all[0]) == rank(all[1]) {
		return nil, problem.Invalid(field, "several folders named %s are shared with you: use the id of one", ref)
	}
	return all[0], nil
}

// usedEvery is the precision of the time at which a folder was last used.
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
			s.Logger.WarnContext(ctx, "record the use of a folder", "folder", one, "error", err)
		}
	}
}
