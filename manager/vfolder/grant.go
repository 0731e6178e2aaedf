package vfolder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/ent/volumegrant"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// GrantVolumeInput sets the permissions on the folders of a volume for one domain, project
// or user, or for everyone if none is given.
type GrantVolumeInput struct {
	Volume      uuid.UUID
	Domain      *uuid.UUID
	Project     *uuid.UUID
	User        *uuid.UUID
	Permissions []access.VolumePermission
}

// GrantVolumePayload is the changed grant.
type GrantVolumePayload struct{ Grant *ent.VolumeGrant }

// RevokeVolumeInput names a grant.
type RevokeVolumeInput struct{ ID uuid.UUID }

// RevokeVolumePayload is the volume after the removal.
type RevokeVolumePayload struct{ Volume *ent.Volume }

// GrantVolume replaces the permissions of one grantee, or of everyone.
func (s *Service) GrantVolume(ctx context.Context, in GrantVolumeInput) (*GrantVolumePayload, error) {
	holder, err := s.grantee(ctx, in)
	if err != nil {
		return nil, err
	}
	permissions := []access.VolumePermission{}
	for _, p := range access.VolumePermissions() { // sorted, without duplicates
		if slices.Contains(in.Permissions, p) {
			permissions = append(permissions, p)
		}
	}
	tx, err := s.Client.Tx(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	// The unique index does not cover NULLs, so changes of a volume's grants take a lock on
	// the volume.
	if _, err := tx.Volume.Query().Where(volume.ID(in.Volume)).ForUpdate().OnlyID(ctx); err != nil {
		return nil, fmt.Errorf("lock volume: %w", err)
	}
	g, err := tx.VolumeGrant.Query().Where(volumegrant.VolumeID(in.Volume), holder).Only(ctx)
	switch {
	case ent.IsNotFound(err):
		g, err = tx.VolumeGrant.Create().SetVolumeID(in.Volume).SetNillableDomainID(in.Domain).
			SetNillableProjectID(in.Project).SetNillableUserID(in.User).SetPermissions(permissions).Save(ctx)
	case err == nil:
		g, err = tx.VolumeGrant.UpdateOne(g).SetPermissions(permissions).Save(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("store grant: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	return &GrantVolumePayload{Grant: g.Unwrap()}, nil
}

// grantee checks that the volume and the grantee exist and that the viewer may grant. It
// returns the predicate of the grantee's grant.
func (s *Service) grantee(ctx context.Context, in GrantVolumeInput) (predicate.VolumeGrant, error) {
	if _, err := s.volume(ctx, &in.Volume); err != nil {
		return nil, err
	}
	if _, err := permit.Check(ctx, access.Grant, access.Volume, access.Object{ID: in.Volume}); err != nil {
		return nil, err
	}
	holders, field := 0, ""
	found := func(name string, id *uuid.UUID, get func(context.Context, uuid.UUID) error) error {
		if id == nil {
			return nil
		}
		holders, field = holders+1, name
		if err := get(ctx, *id); ent.IsNotFound(err) {
			return problem.NotFound(name).WithField(name)
		} else if err != nil {
			return err
		}
		return nil
	}
	for _, err := range []error{
		found("domain", in.Domain, func(ctx context.Context, id uuid.UUID) error { _, err := s.Client.Domain.Get(ctx, id); return err }),
		found("project", in.Project, func(ctx context.Context, id uuid.UUID) error { _, err := s.Client.Project.Get(ctx, id); return err }),
		found("user", in.User, func(ctx context.Context, id uuid.UUID) error { _, err := s.Client.User.Get(ctx, id); return err }),
	} {
		if err != nil {
			return nil, err
		}
	}
	if holders > 1 {
		return nil, problem.Invalid(field, "name one of domain, project and user, or none for all users")
	}
	return ofHolder(in.Domain, in.Project, in.User), nil
}

// ofHolder matches the grant of exactly one grantee, or of everyone if all ids are nil.
func ofHolder(domain, project, user *uuid.UUID) predicate.VolumeGrant {
	switch {
	case domain != nil:
		return volumegrant.DomainID(*domain)
	case project != nil:
		return volumegrant.ProjectID(*project)
	case user != nil:
		return volumegrant.UserID(*user)
	}
	return volumegrant.And(volumegrant.DomainIDIsNil(), volumegrant.ProjectIDIsNil(), volumegrant.UserIDIsNil())
}

// RevokeVolume removes a grant.
func (s *Service) RevokeVolume(ctx context.Context, in RevokeVolumeInput) (*RevokeVolumePayload, error) {
	g, err := s.Client.VolumeGrant.Query().Where(volumegrant.ID(in.ID)).WithVolume().Only(ctx)
	if ent.IsNotFound(err) || err == nil && g.Edges.Volume == nil {
		return nil, problem.NotFound("grant").WithField("id")
	}
	if err != nil {
		return nil, err
	}
	if _, err := permit.Check(ctx, access.Grant, access.Volume, access.Object{ID: g.VolumeID}); err != nil {
		return nil, err
	}
	if err := s.Client.VolumeGrant.DeleteOne(g).Exec(ctx); err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("remove grant: %w", err)
	}
	return &RevokeVolumePayload{Volume: g.Edges.Volume}, nil
}

// everybody grants all permissions on a new volume to everyone.
func everybody(ctx context.Context, tx *ent.Tx, vol uuid.UUID) error {
	return tx.VolumeGrant.Create().SetID(id.New(id.VolumeGrant)).SetVolumeID(vol).SetPermissions(access.VolumePermissions()).Exec(ctx)
}

// GrantsOf returns the grants of volumes, by volume.
func (s *Service) GrantsOf(ctx context.Context, volumes []uuid.UUID) (map[uuid.UUID][]*ent.VolumeGrant, error) {
	all, err := s.Client.VolumeGrant.Query().Where(volumegrant.VolumeIDIn(volumes...)).Order(volumegrant.ByCreatedAt()).All(ctx)
	m := make(map[uuid.UUID][]*ent.VolumeGrant, len(volumes))
	for _, g := range all {
		m[g.VolumeID] = append(m[g.VolumeID], g)
	}
	return m, err
}

// Union returns the permissions that the grants together give a user, in a domain and
// optionally a project.
func Union(grants []*ent.VolumeGrant, domain, project, user uuid.UUID) []access.VolumePermission {
	is := func(id *uuid.UUID, want uuid.UUID) bool { return id == nil || *id == want }
	out := []access.VolumePermission{}
	for _, p := range access.VolumePermissions() {
		if slices.ContainsFunc(grants, func(g *ent.VolumeGrant) bool {
			return slices.Contains(g.Permissions, p) && is(g.DomainID, domain) && is(g.ProjectID, project) && is(g.UserID, user)
		}) {
			out = append(out, p)
		}
	}
	return out
}

// Allow returns an error if no grant of the folder's volume includes the needed permissions.
// The role of the viewer does not matter.
func (s *Service) Allow(ctx context.Context, f *ent.Vfolder, need ...access.VolumePermission) error {
	scope := f.Edges.QuotaScope
	if scope == nil || scope.Edges.Volume == nil {
		var err error
		scope, err = s.Client.QuotaScope.Query().Where(quotascope.ID(f.QuotaScopeID)).WithVolume().Only(viewer.SystemContext(ctx))
		if err != nil {
			return fmt.Errorf("volume of folder %s: %w", f.ID, err)
		}
	}
	return s.allow(ctx, scope.Edges.Volume, f.DomainID, f.ProjectID, need...)
}

func (s *Service) allow(ctx context.Context, vol *ent.Volume, domain uuid.UUID, project *uuid.UUID, need ...access.VolumePermission) error {
	v := viewer.From(ctx)
	if v.IsSystem() {
		return nil
	}
	grants, err := s.Client.VolumeGrant.Query().Where(volumegrant.VolumeID(vol.ID)).All(ctx)
	if err != nil {
		return fmt.Errorf("read grants of volume %s: %w", vol.Name, err)
	}
	p := uuid.Nil
	if project != nil {
		p = *project
	}
	have := Union(grants, domain, p, v.User)
	var missing []string
	for _, n := range need {
		if !slices.Contains(have, n) {
			missing = append(missing, string(n))
		}
	}
	if len(missing) > 0 {
		return problem.Forbidden("you do not have %[2]s on volume %[1]s", vol.Name, strings.Join(missing, ", ")).WithField("volume")
	}
	return nil
}
