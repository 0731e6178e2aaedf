package image_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/image"
)

// A domain that is restricted to some registries cannot start images of others.
func TestRestrictedDomain(t *testing.T) {
	w := identitytest.New(t)
	system := viewer.SystemContext(t.Context())
	s := image.New(image.Config{Client: w.Client})
	var registries []uuid.UUID
	for _, host := range []string{"one.example.org", "two.example.org"} {
		reg := w.Client.Registry.Create().SetName(host).SetHost(host).SaveX(system)
		w.Client.Image.Create().SetReference(host + "/python:3").SetName("python:3").SetArchitecture("amd64").
			SetDigest("sha256:1").SetRegistry(reg).ExecX(system)
		registries = append(registries, reg.ID)
	}
	w.Client.Domain.UpdateOneID(w.A.ID).SetRegistriesRestricted(true).AddRegistryIDs(registries[0]).ExecX(system)
	for _, c := range []struct {
		as        *ent.User
		ref, code string
	}{
		{w.A.Member, "one.example.org/python:3", ""},
		{w.A.Member, "python:3", ""}, // not ambiguous: the other one is hidden
		{w.A.Member, "two.example.org/python:3", problem.CodeNotFound},
		{w.B.Member, "two.example.org/python:3", ""},
		{w.B.Member, "python:3", problem.CodeInvalidArgument},
	} {
		_, err := s.Resolve(w.As(t, c.as), c.ref)
		if p, _ := problem.From(err); (err != nil || c.code != "") && p.Code != c.code {
			t.Errorf("%s for %s: %v, want %q", c.ref, c.as.Username, err, c.code)
		}
	}
}

// TestRegistryOfProjects opens a registry to the members of a project only.
func TestRegistryOfProjects(t *testing.T) {
	w := identitytest.New(t)
	s, root := image.New(image.Config{Client: w.Client, Keys: ring(t)}), w.As(t, w.Superadmin)
	r := add(t, root, s, "lab", "lab.example")
	w.Client.Image.Create().SetReference("lab.example/a:1").SetName("a:1").SetArchitecture("amd64").
		SetDigest("sha256:0").SetRegistryID(r.ID).ExecX(root)
	in := image.UpdateRegistryInput{ID: r.ID}
	in.Projects = []uuid.UUID{w.A.Project.ID}
	if _, err := s.UpdateRegistry(root, in); err != nil {
		t.Fatal(err)
	}
	for who, c := range map[string]struct {
		u    *ent.User
		code string
	}{
		"a member": {w.A.Member, ""}, "a superadmin": {w.Superadmin, ""},
		"a user of another domain": {w.B.Member, problem.CodeNotFound}, "an admin outside of the project": {w.B.Admin, problem.CodeNotFound},
	} {
		_, err := s.Resolve(w.As(t, c.u), "a:1")
		if p, _ := problem.From(err); (err == nil) != (c.code == "") || err != nil && p.Code != c.code {
			t.Errorf("%s: %v", who, err)
		}
	}
	in.Projects = []uuid.UUID{uuid.New()}
	_, err := s.UpdateRegistry(root, in)
	want(t, err, problem.CodeNotFound, "projects")
	in.Projects = []uuid.UUID{}
	if _, err := s.UpdateRegistry(root, in); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(w.As(t, w.B.Member), "a:1"); err != nil {
		t.Errorf("without projects: %v", err)
	}
}
