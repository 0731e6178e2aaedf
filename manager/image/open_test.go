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
