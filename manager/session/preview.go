package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/slot"
)

// Preview is a request that CreateSession would store, as the scheduler would
// see it.
type Preview struct {
	Owner, Project, Domain, Group uuid.UUID
	Keypair                       *uuid.UUID
	Type                          session.Type
	Architecture                  string
	Slots                         resource.Slots // of each kernel
	Least                         resource.Slots // that a kernel of the image needs
	Kernels                       int
	Priority                      int
	StartsAt                      *time.Time
	After                         []string // sessions that have not succeeded yet
	Volumes                       []string
	Agents                        []uuid.UUID
	Strict                        bool
	Lifetime                      *int              // seconds
	SessionGroup                  *ent.SessionGroup // that it would belong to, if any
}

// errOver ends the transaction of a preview, which changes nothing.
var errOver = errors.New("only looked")

// Preview makes the checks of CreateSession and stores nothing. It returns all errors for which
// CreateSession would refuse the request, except those that another error hides; without any, it
// returns the preview. A request that the viewer is not allowed to make is an error.
func (s *Service) Preview(ctx context.Context, in CreateSessionInput) (*Preview, []error, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, nil, err
	}
	in, err = s.complete(ctx, v, in)
	if err != nil && !ofInput(err) {
		return nil, nil, err
	} else if err != nil {
		return nil, []error{err}, nil
	}
	spec, refused, err := s.refusals(ctx, v, in)
	if err != nil {
		return nil, nil, err
	}
	if len(refused) == 0 {
		if err := s.tryStore(ctx, spec); err != nil && !errors.Is(err, errOver) {
			refused = append(refused, err)
		}
	}
	for _, err := range refused {
		if !ofInput(err) {
			return nil, nil, err
		}
	}
	if len(refused) > 0 {
		return nil, refused, nil
	}
	p, err := s.preview(ctx, spec)
	return p, nil, err
}

// ofInput returns the errors that a changed input can correct.
func ofInput(err error) bool {
	var p *problem.Error
	return errors.As(err, &p) && !errdefs.IsUnauthorized(err) && !errdefs.IsUnavailable(err)
}

// refusals runs all checks whose input exists, and returns the errors of all of them. It
// returns PermissionDenied as its own error if the viewer may not start sessions there.
func (s *Service) refusals(ctx context.Context, v *viewer.Viewer, in CreateSessionInput) (spec *sessionSpec, list []error, err error) {
	spec = newSpec(v, in)
	try := func(steps ...inspection) error {
		for _, do := range steps {
			if err := do(ctx, v, in, spec); err != nil {
				list = append(list, err)
				return err
			}
		}
		return nil
	}
	_ = try(checkBasics)
	_ = try(checkTimes)
	_ = try(checkTags)
	_ = try(s.checkNeeded)
	noImage := try(s.checkImage)
	if err := try(s.checkPlace); errdefs.IsPermissionDenied(err) {
		return nil, nil, err
	} else if err != nil {
		return spec, list, nil
	}
	noAgents := try(s.checkAgents)
	_ = try(s.checkSessionGroup)
	_ = try(s.checkMounts)
	if noImage == nil && noAgents == nil {
		_ = try(s.checkSlots, s.checkAutoMounts, s.checkPolicies, s.checkDisk)
	}
	return spec, list, nil
}

// tryStore makes the checks of store in a transaction that is rolled back.
func (s *Service) tryStore(ctx context.Context, spec *sessionSpec) error {
	tx, err := s.Client.Tx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := s.admit(ctx, tx, spec); err != nil {
		return err
	}
	if err := lock(ctx, tx, spec); err != nil {
		return err
	}
	taken, err := tx.Session.Query().Where(session.OwnerID(spec.owner), session.Name(spec.name), session.TerminatedAtIsNil(), session.Replaced(false)).Exist(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("look for the name: %w", err)
	}
	if taken {
		return nameTaken(spec.name)
	}
	return errOver
}

func (s *Service) preview(ctx context.Context, spec *sessionSpec) (*Preview, error) {
	p := &Preview{
		Owner: spec.owner, Project: spec.project, Domain: spec.domain, Group: spec.group, Keypair: spec.keypair, Type: spec.kind,
		Architecture: spec.image.Architecture, Slots: spec.slots, Least: slot.Minimum(spec.image),
		Kernels: spec.kernels, Priority: spec.priority, StartsAt: spec.startsAt, Agents: spec.agents, Strict: spec.strict,
		Lifetime: spec.lifetime,
	}
	if spec.together != nil {
		var err error
		if p.SessionGroup, err = s.Client.SessionGroup.Get(ctx, *spec.together); err != nil {
			return nil, permit.Missing(err, "session group", "sessionGroup")
		}
	}
	for _, n := range spec.needed {
		if !n.done {
			p.After = append(p.After, n.name)
		}
	}
	var folders []uuid.UUID
	for _, m := range spec.mounts {
		folders = append(folders, m.folder)
	}
	if len(folders) == 0 {
		return p, nil
	}
	volumes, err := s.Client.Vfolder.Query().Where(vfolder.IDIn(folders...)).QueryQuotaScope().QueryVolume().All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("find the volumes of folders: %w", err)
	}
	for _, v := range volumes {
		p.Volumes = append(p.Volumes, v.Name)
	}
	return p, nil
}

// Groups lists the resource groups that are open to the viewer for a session of
// this domain, project and type.
func (s *Service) Groups(ctx context.Context, of *Preview) ([]uuid.UUID, error) {
	list, err := s.groups(ctx, viewer.From(ctx), nil, &sessionSpec{kind: of.Type, resolved: resolved{domain: of.Domain, project: of.Project}})
	if errdefs.IsNotFound(err) || errdefs.IsInvalidArgument(err) { // none
		return nil, nil
	}
	return list, err
}
