package vfolder

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
)

// Each way of losing access to a folder has its own result.
func TestLoss(t *testing.T) {
	ann, bob, theirs := uuid.New(), uuid.New(), uuid.New()
	anns := &ent.Vfolder{ID: uuid.New(), OwnerID: &ann, Status: vfolder.StatusReady}
	project := func(active bool) *ent.Vfolder {
		f := &ent.Vfolder{ID: uuid.New(), ProjectID: &theirs, Permission: access.ReadOnly, Status: vfolder.StatusReady}
		f.Edges.Project = &ent.Project{ID: theirs, Active: active}
		return f
	}
	in := func(s vfolder.Status) *ent.Vfolder {
		f := *anns
		f.Status = s
		return &f
	}
	user := func(id uuid.UUID) *viewer.Viewer { return &viewer.Viewer{User: id, Role: viewer.RoleUser} }
	member := &viewer.Viewer{User: bob, Role: viewer.RoleUser, Projects: []uuid.UUID{theirs}}
	reader := &viewer.Viewer{User: bob, Role: viewer.RoleUser, Shares: map[uuid.UUID]access.FolderPermission{anns.ID: access.ReadOnly}}
	for _, c := range []struct {
		name  string
		who   *viewer.Viewer
		of    *ent.Vfolder
		write bool
		want  Loss
	}{
		{"one's own", user(ann), anns, true, ""},
		{"shared to read", reader, anns, false, ""},
		{"shared to read, and written", reader, anns, true, lostReadWrite},
		{"not shared", user(bob), anns, false, lostShare},
		{"not shared, and written", user(bob), anns, true, lostShare},
		{"an inactive user", nil, anns, false, lostInactive},
		{"in the trash", reader, in(vfolder.StatusTrash), false, lostTrashed},
		{"in the trash, of an inactive user", nil, in(vfolder.StatusTrash), false, lostTrashed},
		{"being deleted", user(ann), in(vfolder.StatusDeleting), false, lostDeleted},
		{"forgotten", user(ann), nil, false, lostDeleted},
		{"a member's", member, project(true), false, ""},
		{"a member's, and written", member, project(true), true, lostReadWrite},
		{"not a member", user(bob), project(true), false, lostMember},
		{"of a project that is not active", user(bob), project(false), false, lostProject},
	} {
		if got := loss(c.who, c.of, c.write); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
