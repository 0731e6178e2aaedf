package identity

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/predicate"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/task"
)

// DeleteUserInput names an inactive user and the fate of the folders that they own: a user of
// the domain who gets them, or their deletion. If the user owns folders, exactly one of the
// two is required.
type DeleteUserInput struct {
	ID            uuid.UUID
	FoldersTo     *uuid.UUID
	DeleteFolders *bool
}

// Purged is called after a user was removed, with the requesting user, the removed user's
// former row and the fate of their folders.
type Purged func(ctx context.Context, by uuid.UUID, who *ent.User, folders string)

// purgeKind is the kind of the tasks that remove users.
const purgeKind = "purge_user"

// DeleteUser removes a user in a task: their live sessions and all credentials end, their
// folders are transferred or deleted, and their rows are deleted. Audit entries about them and
// their usage stay, under their id and name.
func (s *Service) DeleteUser(ctx context.Context, in DeleteUserInput) (*task.TaskPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if in.FoldersTo != nil && isTrue(in.DeleteFolders) {
		return nil, problem.Invalid("deleteFolders", "cannot be combined with foldersTo")
	}
	var t *ent.Task
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		u, err := s.purgeable(ctx, tx, in)
		if err != nil {
			return err
		}
		t, err = s.tasks.Enqueue(ctx, tx, task.Wanted{
			Kind: purgeKind, Title: "Purge " + known(u), Input: in, Subject: u.ID, Domain: u.DomainID,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("purge user %s: %w", in.ID, err)
	}
	s.tasks.Wake(ctx, t.ID)
	return &task.TaskPayload{Task: t.Unwrap()}, nil
}

// purgeable returns and locks a user whom the viewer can purge. Its error lists all obstacles.
func (s *Service) purgeable(ctx context.Context, tx *ent.Tx, in DeleteUserInput) (*ent.User, error) {
	if err := lockSuperadmins(ctx, tx); err != nil {
		return nil, err
	}
	u, err := tx.User.Query().Where(user.ID(in.ID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "user", "id")
	}
	v, err := permit.Check(ctx, access.Delete, access.User, access.Object{ID: u.ID, Domain: u.DomainID, Owner: u.ID})
	if err != nil {
		return nil, err
	}
	if err := mayGrant(v, u.DomainID, u.Role); err != nil {
		return nil, err
	}
	if err := notPurged(ctx, tx, u); err != nil {
		return nil, err
	}
	if err := notLast(ctx, tx, u.ID); err != nil {
		return nil, err
	}
	if in.FoldersTo != nil {
		if err := heir(ctx, tx, u, *in.FoldersTo); err != nil {
			return nil, err
		}
	}
	return u, unobstructed(viewer.SystemContext(ctx), tx, u, in)
}

// unobstructed returns an error that lists all obstacles of a purge.
func unobstructed(ctx context.Context, tx *ent.Tx, u *ent.User, in DeleteUserInput) error {
	var list []string
	field := ""
	if u.Status == user.StatusActive {
		list, field = append(list, "the user is active: deactivate or delete them first"), "id"
	}
	served, err := serving(ctx, tx, deployment.OwnerID(u.ID))
	if err != nil {
		return err
	}
	if len(served) > 0 {
		list = append(list, fmt.Sprintf("the user owns %s, %s among them: delete them first", counted(len(served), "deployment"), served[0]))
		field = cmp.Or(field, "id")
	}
	if in.FoldersTo == nil && !isTrue(in.DeleteFolders) {
		n, err := tx.Vfolder.Query().Where(owned(u.ID)).Count(ctx)
		if err != nil {
			return fmt.Errorf("count folders: %w", err)
		}
		if n > 0 {
			list = append(list, fmt.Sprintf("the user owns %s: say who gets them (foldersTo), or that they are deleted (deleteFolders)", counted(n, "folder")))
			field = cmp.Or(field, "foldersTo")
		}
	}
	if len(list) == 0 {
		return nil
	}
	return problem.Precondition("%s", strings.Join(list, "; ")).WithField(field)
}

// heir checks that a user can receive another user's folders.
func heir(ctx context.Context, tx *ent.Tx, of *ent.User, id uuid.UUID) error {
	to, err := tx.User.Query().Where(user.ID(id)).Only(ctx)
	if err != nil {
		return permit.Missing(err, "user", "foldersTo")
	}
	switch {
	case to.ID == of.ID:
		return problem.Invalid("foldersTo", "is the user who is purged")
	case to.DomainID != of.DomainID:
		return problem.Invalid("foldersTo", "must be of the same domain")
	case to.Status != user.StatusActive:
		return problem.Precondition("the user who gets the folders must be active").WithField("foldersTo")
	}
	return nil
}

// notPurged returns an error for a user who is purged, or is being purged.
func notPurged(ctx context.Context, tx *ent.Tx, u *ent.User) error {
	if gone(u) {
		return problem.Precondition("the user was purged").WithField("id")
	}
	busy, err := tx.Task.Query().Where(enttask.Kind(purgeKind), enttask.SubjectID(u.ID),
		enttask.StatusIn(enttask.StatusWaiting, enttask.StatusRunning)).Exist(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("look for a purge: %w", err)
	}
	if busy {
		return problem.Precondition("the user is being purged; cancel that task first").WithField("id")
	}
	return nil
}

// owned matches the folders of a user that exist, or are in the trash.
func owned(id uuid.UUID) predicate.Vfolder {
	return vfolder.And(vfolder.OwnerID(id), vfolder.StatusIn(vfolder.StatusReady, vfolder.StatusCloning, vfolder.StatusTrash))
}

const tombstonePrefix = "deleted-"

// tombstone is the name of a purged user to whom history still refers.
func tombstone(id uuid.UUID) string { return tombstonePrefix + id.String() }

func gone(u *ent.User) bool { return u.Username == tombstone(u.ID) }

// Present excludes purged users to whom history still refers.
func Present() predicate.User {
	return func(s *sql.Selector) {
		s.Where(sql.ExprP(s.C(user.FieldUsername) + " <> '" + tombstonePrefix + "' || " + s.C(user.FieldID) + "::text"))
	}
}

// known returns the display name of a user: full name and e-mail address.
func known(u *ent.User) string {
	if u.FullName == "" {
		return u.Email
	}
	return fmt.Sprintf("%s <%s>", u.FullName, u.Email)
}
