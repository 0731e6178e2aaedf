package session

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessiongroup"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

// storer stores specs as pending sessions, all of them or none, and returns the sessions
// in the order of the specs.
type storer interface {
	store(ctx context.Context, specs []*sessionSpec) ([]*ent.Session, error)
}

// store is the storer that writes the rows, in one transaction. check has already asked
// what the viewers may do.
func (s database) store(ctx context.Context, specs []*sessionSpec) (sessions []*ent.Session, err error) {
	ctx = viewer.SystemContext(ctx)
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		for _, spec := range specs {
			if err := s.admit(ctx, tx, spec); err != nil {
				return err
			}
		}
		if err := lock(ctx, tx, specs...); err != nil {
			return err
		}
		sessions, err = s.insert(ctx, tx, specs)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, spec := range specs {
		sessions[i] = sessions[i].Unwrap()
		s.noteUse(ctx, spec)
	}
	return sessions, nil
}

// lock keeps the rows that specs refer to as they are until the sessions are stored: they
// may have changed since they were read.
func lock(ctx context.Context, tx *ent.Tx, specs ...*sessionSpec) error {
	for _, do := range []func(context.Context, *ent.Tx, ...*sessionSpec) error{lockMemberships, lockFolders, lockSessionGroups} {
		if err := do(ctx, tx, specs...); err != nil {
			return err
		}
	}
	return nil
}

// lockMemberships keeps the owners in their projects.
func lockMemberships(ctx context.Context, tx *ent.Tx, specs ...*sessionSpec) error {
	type member struct{ owner, project uuid.UUID }
	want := map[member]bool{}
	var any []predicate.Membership
	for _, spec := range specs {
		if m := (member{spec.owner, spec.project}); spec.member && !want[m] {
			want[m] = true
			any = append(any, membership.And(membership.UserID(m.owner), membership.ProjectID(m.project)))
		}
	}
	if len(any) == 0 {
		return nil
	}
	locked, err := tx.Membership.Query().Where(membership.Or(any...),
		membership.HasUserWith(user.StatusEQ(user.StatusActive)), membership.HasProjectWith(project.Active(true))).
		Order(membership.ByID()).ForShare().IDs(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("lock memberships: %w", err)
	}
	if len(locked) < len(want) {
		return problem.NotFound("project").WithField("project")
	}
	return nil
}

// lockFolders keeps the folders from being deleted. Afterwards, their mounts do so.
func lockFolders(ctx context.Context, tx *ent.Tx, specs ...*sessionSpec) error {
	want := map[uuid.UUID]bool{}
	for _, spec := range specs {
		for _, m := range spec.mounts {
			want[m.folder] = true
		}
	}
	if len(want) == 0 {
		return nil
	}
	locked, err := tx.Vfolder.Query().
		Where(vfolder.IDIn(store.IDs(want)...), vfolder.StatusEQ(vfolder.StatusReady)).
		Order(vfolder.ByID()).ForShare().IDs(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("lock folders: %w", err)
	}
	if len(locked) < len(want) {
		return problem.NotFound("folder").WithField("mounts")
	}
	return nil
}

// lockSessionGroups keeps the session groups from being deleted.
func lockSessionGroups(ctx context.Context, tx *ent.Tx, specs ...*sessionSpec) error {
	want := map[uuid.UUID]bool{}
	for _, spec := range specs {
		if spec.together != nil {
			want[*spec.together] = true
		}
	}
	if len(want) == 0 {
		return nil
	}
	locked, err := tx.SessionGroup.Query().Where(sessiongroup.IDIn(store.IDs(want)...)).Order(sessiongroup.ByID()).ForShare().IDs(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("lock session groups: %w", err)
	}
	if len(locked) < len(want) {
		return problem.NotFound("session group").WithField("sessionGroup")
	}
	return nil
}

// insert inserts the rows and returns the sessions. The number of its statements does not
// grow with plain specs.
func (s database) insert(ctx context.Context, tx *ent.Tx, specs []*sessionSpec) ([]*ent.Session, error) {
	ids, err := s.insertSessions(ctx, tx, specs)
	if err != nil {
		return nil, err
	}
	for i, spec := range specs {
		if err := insertReferences(ctx, tx, ids[i], spec); err != nil {
			return nil, err
		}
	}
	stored, err := tx.Session.Query().Where(func(q *sql.Selector) { q.Where(store.In(q.C(session.FieldID), ids)) }).
		Order(session.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	return inOrder(stored, ids)
}

// insertReferences inserts what a session mounts, depends on and prefers.
func insertReferences(ctx context.Context, tx *ent.Tx, id uuid.UUID, spec *sessionSpec) error {
	for _, m := range spec.mounts {
		if err := tx.SessionMount.Create().SetSessionID(id).SetVfolderID(m.folder).
			SetTarget(m.target).SetSubpath(m.subpath).SetReadOnly(m.readOnly).SetReadOnlyWanted(m.readOnlyWanted).Exec(ctx); err != nil {
			return fmt.Errorf("store mount %s: %w", m.target, err)
		}
	}
	for _, n := range spec.needed {
		if err := tx.SessionDependency.Create().SetSessionID(id).SetNeededID(n.ID).SetName(n.Name).
			SetSatisfied(succeeded(n)).Exec(ctx); err != nil {
			return fmt.Errorf("store dependency on %s: %w", n.Name, err)
		}
	}
	if len(spec.agents) == 0 {
		return nil
	}
	if err := tx.Session.Update().Where(session.ID(id)).AddAgentIDs(spec.agents...).Exec(ctx); err != nil {
		return fmt.Errorf("store agents of session %s: %w", id, err)
	}
	return nil
}

// inOrder returns the sessions in the order of their ids.
func inOrder(made []*ent.Session, ids []uuid.UUID) ([]*ent.Session, error) {
	byID := make(map[uuid.UUID]*ent.Session, len(made))
	for _, one := range made {
		byID[one.ID] = one
	}
	out := make([]*ent.Session, len(ids))
	for i, id := range ids {
		if out[i] = byID[id]; out[i] == nil {
			return nil, fmt.Errorf("session %s was not stored", id)
		}
	}
	return out, nil
}
