package session

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessiongroup"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session/syntax"
	"github.com/berthhq/berth/manager/store"
)

// maxSessionGroups limits the session groups of one user.
const maxSessionGroups = 1000

// CreateSessionGroupInput describes a session group: its sessions are placed together.
type CreateSessionGroupInput struct {
	Name      string
	Placement sessiongroup.Placement
	Strict    *bool
	Project   *uuid.UUID
}

// DeleteSessionGroupInput names the session group to delete.
type DeleteSessionGroupInput struct{ ID uuid.UUID }

// SessionGroupPayload is a new session group.
type SessionGroupPayload struct{ SessionGroup *ent.SessionGroup }

// DeleteSessionGroupPayload is the deleted session group.
type DeleteSessionGroupPayload struct{ ID uuid.UUID }

// CreateSessionGroup creates a session group of the viewer in a project in which they can
// start sessions.
func (s *Service) CreateSessionGroup(ctx context.Context, in CreateSessionGroupInput) (*SessionGroupPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	if err := syntax.Name(in.Name); err != nil {
		return nil, err
	}
	spec := &sessionSpec{owner: v.User}
	if err := s.checkProject(ctx, v, in.Project, spec); err != nil {
		return nil, err
	}
	var g *ent.SessionGroup
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) (err error) {
		if err := lockMemberships(ctx, tx, spec); err != nil {
			return err
		}
		if err := store.Lock(ctx, tx, "session groups "+v.User.String()); err != nil {
			return err
		}
		n, err := tx.SessionGroup.Query().Where(sessiongroup.OwnerID(v.User)).Count(viewer.SystemContext(ctx))
		if err != nil {
			return fmt.Errorf("count session groups: %w", err)
		}
		if n >= maxSessionGroups {
			return problem.Exhausted("you have %d session groups; delete some first", n).WithLimit(fmt.Sprint(maxSessionGroups))
		}
		g, err = tx.SessionGroup.Create().SetName(in.Name).SetPlacement(in.Placement).SetStrict(in.Strict != nil && *in.Strict).
			SetDomainID(spec.domain).SetProjectID(spec.project).SetOwnerID(v.User).Save(ctx)
		return err
	})
	if ent.IsConstraintError(err) {
		return nil, problem.Exists("name", "a session group of yours is already named %q", in.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("create session group: %w", err)
	}
	return &SessionGroupPayload{SessionGroup: g.Unwrap()}, nil
}

// checkSessionGroup finds the session group, which must be one of the owner's in the
// session's project.
func (s *Service) checkSessionGroup(ctx context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	if in.SessionGroup == nil {
		return nil
	}
	g, err := s.Client.SessionGroup.Query().Where(sessiongroup.ID(*in.SessionGroup)).Only(ctx)
	if err != nil {
		return permit.Missing(err, "session group", "sessionGroup")
	}
	if g.OwnerID != spec.owner || g.ProjectID != spec.project {
		return problem.Invalid("sessionGroup", "%s is not one of your session groups in this project", g.Name)
	}
	spec.together = &g.ID
	return nil
}

// DeleteSessionGroup deletes a session group. Its sessions continue without one.
func (s *Service) DeleteSessionGroup(ctx context.Context, in DeleteSessionGroupInput) (*DeleteSessionGroupPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	g, err := s.Client.SessionGroup.Query().Where(sessiongroup.ID(in.ID)).Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "session group", "id")
	}
	on := access.Object{ID: g.ID, Domain: g.DomainID, Project: g.ProjectID, Owner: g.OwnerID}
	if _, err := permit.Check(ctx, access.Delete, access.Session, on); err != nil {
		return nil, err
	}
	members, err := g.QuerySessions().Where(session.TerminatedAtIsNil()).IDs(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("list sessions of session group %s: %w", g.ID, err)
	}
	if err := s.Client.SessionGroup.DeleteOne(g).Exec(ctx); err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("delete session group %s: %w", g.ID, err)
	}
	for _, member := range members { // from now on, each is placed alone
		s.changed(ctx, member)
	}
	return &DeleteSessionGroupPayload{ID: g.ID}, nil
}
