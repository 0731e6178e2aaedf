package session

import (
	"context"
	"fmt"
	"slices"

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

// store is the storer that writes the rows, in one transaction. check has already checked the
// permissions of the viewers.
func (s database) store(ctx context.Context, specs []*sessionSpec) (sessions []*ent.Session, err error) {
	var ended []endedMove
	ctx = viewer.SystemContext(ctx)
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		for _, spec := range specs {
			if spec.member.counted() {
				continue // with the first member of its array
			}
			if err := s.admit(ctx, tx, spec); err != nil {
				return err
			}
		}
		if err := lock(ctx, tx, specs...); err != nil {
			return err
		}
		if ended, err = replaced(ctx, tx, specs...); err != nil {
			return err
		}
		if err := insertArray(ctx, tx, specs[0]); err != nil {
			return err
		}
		for some := range slices.Chunk(specs, insertAtOnce) {
			rows, err := s.insert(ctx, tx, some)
			if err != nil {
				return err
			}
			sessions = append(sessions, rows...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, m := range ended {
		s.noteMove(ctx, m.from, m.move)
	}
	for i, spec := range specs {
		sessions[i] = sessions[i].Unwrap()
		if !spec.member.counted() {
			s.noteUse(ctx, spec)
		}
		if spec.restarts != nil {
			s.changed(ctx, spec.restarts.ID)
		}
	}
	return sessions, nil
}

// insertAtOnce limits the sessions of one statement, which has all of their fields.
const insertAtOnce = 1000

// lock locks the rows that specs refer to until the sessions are stored, and checks them again,
// because they may have changed since they were read.
func lock(ctx context.Context, tx *ent.Tx, specs ...*sessionSpec) error {
	for _, do := range []func(context.Context, *ent.Tx, ...*sessionSpec) error{lockMemberships, lockFolders, lockSessionGroups} {
		if err := do(ctx, tx, specs...); err != nil {
			return err
		}
	}
	return nil
}

// lockMemberships locks the memberships of the owners in their projects.
func lockMemberships(ctx context.Context, tx *ent.Tx, specs ...*sessionSpec) error {
	type member struct{ owner, project uuid.UUID }
	want := map[member]bool{}
	var any []predicate.Membership
	for _, spec := range specs {
		if m := (member{spec.owner, spec.project}); spec.belongs && !want[m] {
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

// lockFolders prevents the deletion of the folders. Later, their mounts prevent it.
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

// lockSessionGroups prevents the deletion of the session groups.
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
	if err := insertReferences(ctx, tx, ids, specs); err != nil {
		return nil, err
	}
	stored, err := tx.Session.Query().Where(func(q *sql.Selector) { q.Where(store.In(q.C(session.FieldID), ids)) }).
		Order(session.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	return inOrder(stored, ids)
}

// insertReferences inserts the mounts, the dependencies and the preferred agents of sessions.
func insertReferences(ctx context.Context, tx *ent.Tx, ids []uuid.UUID, specs []*sessionSpec) error {
	var mounts []*ent.SessionMountCreate
	var needed []*ent.SessionDependencyCreate
	for i, spec := range specs {
		for _, m := range spec.mounts {
			mounts = append(mounts, tx.SessionMount.Create().SetSessionID(ids[i]).SetVfolderID(m.folder).
				SetTarget(m.target).SetSubpath(m.subpath).SetReadOnly(m.readOnly).SetReadOnlyWanted(m.readOnlyWanted))
		}
		for _, n := range spec.needed {
			needed = append(needed, n.row(tx).SetSessionID(ids[i]))
		}
		if len(spec.agents) > 0 {
			if err := tx.Session.Update().Where(session.ID(ids[i])).AddAgentIDs(spec.agents...).Exec(ctx); err != nil {
				return fmt.Errorf("store agents of session %s: %w", ids[i], err)
			}
		}
	}
	for some := range slices.Chunk(mounts, insertAtOnce) {
		if err := tx.SessionMount.CreateBulk(some...).Exec(ctx); err != nil {
			return fmt.Errorf("store mounts: %w", err)
		}
	}
	for some := range slices.Chunk(needed, insertAtOnce) {
		if err := tx.SessionDependency.CreateBulk(some...).Exec(ctx); err != nil {
			return fmt.Errorf("store dependencies: %w", err)
		}
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
