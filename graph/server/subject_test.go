package server

import (
	"testing"
)

// Mutations that deliberately concern no entity.
var withoutEntity = map[string]bool{}

func TestEveryMutationIsAboutAnEntity(t *testing.T) {
	t.Parallel()
	s := published(t)
	want := map[string]string{
		"createUser": "user", "addMembership": "project", "revokeLoginSession": "credential", "deleteImage": "image",
		"createUpload": "vfolder", "createJoinToken": "system", "changePassword": "user", "terminateSession": "session",
		"setRetention": "system", "attachResourcePolicy": "resource_policy",
	}
	for _, f := range s.Mutation.Fields {
		got := string(entityOf(s, f))
		if (got == "") != withoutEntity[f.Name] {
			t.Errorf("%s: %q", f.Name, got)
		}
		if w, ok := want[f.Name]; ok && got != w {
			t.Errorf("%s is about %q, not %q", f.Name, got, w)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("not in the schema: %v", want)
	}
}
