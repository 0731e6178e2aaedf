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
)

// Use is what someone does with the files of a folder.
type Use struct {
	User, Folder uuid.UUID
	Write        bool
}

// Loss is why someone may not, or no longer, use a folder; "" where they may.
type Loss string

// What there is to lose a folder by.
const (
	lostDeleted   Loss = "deleted"
	lostTrashed   Loss = "trashed"
	lostInactive  Loss = "inactive"  // the user, or their domain
	lostProject   Loss = "project"   // it is not active
	lostMember    Loss = "member"    // they are none of the project
	lostShare     Loss = "share"     // no one shares it with them
	lostReadWrite Loss = "read-only" // they may read it
)

// Of says what a folder is to the one who lost it, after its name.
func (l Loss) Of(who string) string {
	switch l {
	case lostTrashed:
		return "is in the trash"
	case lostInactive:
		return "is closed to " + who + ", who cannot log in any more"
	case lostProject:
		return "is of a project that is not active any more"
	case lostMember:
		return "is of a project of which " + who + " is no longer a member"
	case lostShare:
		return "is no longer shared with " + who
	case lostReadWrite:
		return "is for " + who + " to read only"
	}
	return "is deleted"
}

// Lost tells of each use whether it is not, or no longer, allowed, and why.
func (s *Service) Lost(ctx context.Context, uses []Use) ([]Loss, error) {
	who, err := s.users(ctx, uses)
	if err != nil {
		return nil, err
	}
	return s.lost(ctx, uses, who)
}

// kept refuses a task what its user has lost meanwhile; what names the folder.
func (s *Service) kept(ctx context.Context, use Use, what string) error {
	lost, err := s.Lost(ctx, []Use{use})
	if err != nil || lost[0] == "" {
		return err
	}
	return problem.Precondition("%s %s", what, lost[0].Of("who asked"))
}

// users reads the rights of those of the users who are active.
func (s *Service) users(ctx context.Context, uses []Use) (map[uuid.UUID]*viewer.Viewer, error) {
	var users []uuid.UUID
	for _, u := range uses {
		users = append(users, u.User)
	}
	return s.Rights(viewer.SystemContext(ctx), users)
}

func (s *Service) lost(ctx context.Context, uses []Use, who map[uuid.UUID]*viewer.Viewer) ([]Loss, error) {
	ctx = viewer.SystemContext(ctx)
	var folders []uuid.UUID
	for _, u := range uses {
		folders = append(folders, u.Folder)
	}
	rows, err := s.client.Vfolder.Query().Where(vfolder.IDIn(folders...)).WithProject().All(ctx)
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

// loss looks at one use of a folder, nil for none, by a user, nil for who is not active.
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
	reads := v.May(access.Special, e, on)
	switch {
	case reads && (!write || v.May(access.Write, e, on)):
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
