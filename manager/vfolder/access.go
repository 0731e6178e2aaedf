package vfolder

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/storage/storagepb"
)

// Use is the use of a folder's files by a user.
type Use struct {
	User, Folder uuid.UUID
	Write        bool
}

// Loss is the reason why a user has no access to a folder; "" means that they have access.
type Loss string

// The reasons.
const (
	lostDeleted   Loss = "deleted"
	lostTrashed   Loss = "trashed"
	lostInactive  Loss = "inactive"  // the user or their domain is not active
	lostProject   Loss = "project"   // the project is not active
	lostMember    Loss = "member"    // they are not a member of the project
	lostShare     Loss = "share"     // the folder is not shared with them
	lostReadWrite Loss = "read-only" // they can only read it
)

// Of describes the relation of the user to the folder, to be appended to its name.
func (l Loss) Of(who string) string {
	switch l {
	case lostTrashed:
		return "is in the trash"
	case lostInactive:
		return "cannot be used by " + who + ", who can no longer log in"
	case lostProject:
		return "belongs to a project that is no longer active"
	case lostMember:
		return "belongs to a project of which " + who + " is no longer a member"
	case lostShare:
		return "is no longer shared with " + who
	case lostReadWrite:
		return "can only be read by " + who
	}
	return "is deleted"
}

// Lost returns for each use the reason why it is not allowed, or "".
func (s *Service) Lost(ctx context.Context, uses []Use) ([]Loss, error) {
	who, err := s.users(ctx, uses)
	if err != nil {
		return nil, err
	}
	return s.lost(ctx, uses, who)
}

// kept returns an error if the user of a task has lost the access in the meantime; what names
// the folder.
func (s *Service) kept(ctx context.Context, use Use, what string) error {
	lost, err := s.Lost(ctx, []Use{use})
	if err != nil || lost[0] == "" {
		return err
	}
	return problem.Precondition("%s %s", what, lost[0].Of("who asked"))
}

// users returns the permissions of the active users.
func (s *Service) users(ctx context.Context, uses []Use) (map[uuid.UUID]*viewer.Viewer, error) {
	var users []uuid.UUID
	for _, u := range uses {
		users = append(users, u.User)
	}
	return s.Users.Rights(viewer.SystemContext(ctx), users)
}

func (s *Service) lost(ctx context.Context, uses []Use, who map[uuid.UUID]*viewer.Viewer) ([]Loss, error) {
	ctx = viewer.SystemContext(ctx)
	var folders []uuid.UUID
	for _, u := range uses {
		folders = append(folders, u.Folder)
	}
	rows, err := s.Client.Vfolder.Query().Where(vfolder.IDIn(folders...)).WithProject().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read folders: %w", err)
	}
	byID := make(map[uuid.UUID]*ent.Vfolder, len(rows))
	for _, f := range rows {
		byID[f.ID] = f
	}
	lost := make([]Loss, len(uses))
	for i, u := range uses {
		lost[i] = loss(who[u.User], byID[u.Folder], u.Write)
	}
	return lost, nil
}

// loss returns the reason why a user cannot use a folder. A nil folder does not exist; a nil
// user is not active.
func loss(v *viewer.Viewer, f *ent.Vfolder, write bool) Loss {
	switch {
	case f == nil:
		return lostDeleted
	case f.Status == vfolder.StatusTrash:
		return lostTrashed
	case f.Status != vfolder.StatusReady:
		return lostDeleted
	case v == nil:
		return lostInactive
	}
	e, on, _ := permit.Of(f)
	reads := v.May(access.ReadFiles, e, on)
	switch {
	case reads && (!write || v.May(access.WriteFiles, e, on)):
		return ""
	case reads:
		return lostReadWrite
	case f.Edges.Project != nil && !f.Edges.Project.Active:
		return lostProject
	case f.ProjectID != nil && !v.MemberOf(*f.ProjectID):
		return lostMember
	}
	return lostShare
}

// Source returns a folder whose files the viewer can read.
func (s *Service) Source(ctx context.Context, id uuid.UUID) (*ent.Vfolder, error) {
	return s.copyable(ctx, id)
}

// Target returns a folder that the viewer can write files to.
func (s *Service) Target(ctx context.Context, id uuid.UUID) (*ent.Vfolder, error) {
	return s.writable(ctx, id)
}

// User returns the current permissions of a user; a user who is not active has none.
func (s *Service) User(ctx context.Context, id uuid.UUID) (*viewer.Viewer, error) {
	who, err := s.Users.Rights(viewer.SystemContext(ctx), []uuid.UUID{id})
	if err != nil {
		return nil, fmt.Errorf("read rights: %w", err)
	}
	if who[id] == nil {
		return viewer.Anonymous(), nil
	}
	return who[id], nil
}

// At is a folder at its proxy, for tasks that move files from and to object storages.
type At struct {
	Ref     *storagepb.FolderRef
	Volume  string
	Objects storagepb.ObjectsClient
}

// At finds the proxy for a task of a folder, after it has checked that the user still has
// access. If no proxy is connected, the error makes the task wait.
func (s *Service) At(ctx context.Context, use Use) (*At, error) {
	if err := s.kept(ctx, use, "the folder"); err != nil {
		return nil, err
	}
	f, err := s.whole(ctx, use.Folder)
	if err != nil {
		return nil, err
	}
	at := &At{Ref: folderRef(f), Volume: f.Edges.QuotaScope.Edges.Volume.Name}
	p, err := s.reach(at.Volume)
	if err != nil {
		return nil, later(at.Volume, err)
	}
	at.Objects = p.objects
	return at, nil
}

// Later converts an error of the proxy to one that makes a task wait, if waiting helps.
func (a *At) Later(err error) error { return later(a.Volume, err) }

// Changed notifies subscribers that files of the folder have changed.
func (s *Service) Changed(ctx context.Context, id uuid.UUID) { s.changed(ctx, id) }
