package image_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/image"
)

// Mirrors keep their logins until they get others, in one sealed column; agents get each mirror's own login, and never
// that of the registry.
func TestMirrorsOfARegistry(t *testing.T) {
	w := identitytest.New(t)
	s, root := image.New(image.Config{Client: w.Client, Keys: ring(t)}), w.As(t, w.Superadmin)
	out, err := s.CreateRegistry(root, image.CreateRegistryInput{
		Name: "hub", Host: "hub.example.org", Username: new("registry-user"), Password: new("registry-password"),
		RegistrySettings: image.RegistrySettings{Mirrors: []image.RegistryMirrorInput{
			{Host: "Mirror.example:5000", Username: new("robot"), Password: new("mirror-secret")}, {Host: "10.0.0.8:5000", PlainHTTP: new(true)},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []report.Mirror{{Host: "mirror.example:5000", Login: true}, {Host: "10.0.0.8:5000", PlainHTTP: true}}
	if fmt.Sprint(out.Registry.Mirrors) != fmt.Sprint(want) {
		t.Errorf("mirrors %v, want %v", out.Registry.Mirrors, want)
	}
	row := w.Client.Registry.GetX(root, out.Registry.ID)
	if bytes.Contains(row.MirrorsSealed, []byte("mirror-secret")) || strings.Contains(fmt.Sprint(row.Mirrors), "mirror-secret") {
		t.Error("the row has the password")
	}
	img := w.Client.Image.Create().SetReference("hub.example.org/a:1").SetName("a:1").SetArchitecture("amd64").SetDigest("sha256:1").SetRegistry(row).SaveX(root)
	logins := func() string {
		img.Edges.Registry = w.Client.Registry.GetX(root, row.ID)
		req, err := s.PullRequest(root, img)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s/%s", req.Username, req.Password)
		for _, m := range req.Mirrors {
			text += fmt.Sprintf(" %s=%s/%s", m.Host, m.Username, m.Password)
		}
		return text
	}
	change := func(list ...image.RegistryMirrorInput) {
		t.Helper()
		if _, err := s.UpdateRegistry(root, image.UpdateRegistryInput{ID: row.ID, RegistrySettings: image.RegistrySettings{Mirrors: list}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := logins(); got != "registry-user/registry-password mirror.example:5000=robot/mirror-secret 10.0.0.8:5000=/" {
		t.Errorf("agents get %s", got)
	}
	change(image.RegistryMirrorInput{Host: "10.0.0.8:5000"}, image.RegistryMirrorInput{Host: "mirror.example:5000"})
	if got := logins(); got != "registry-user/registry-password 10.0.0.8:5000=/ mirror.example:5000=robot/mirror-secret" {
		t.Errorf("in another order, agents get %s", got)
	}
	change(image.RegistryMirrorInput{Host: "mirror.example:5001"}, image.RegistryMirrorInput{Host: "mirror.example:5000", Username: new(""), Password: new("")})
	if got := logins(); got != "registry-user/registry-password mirror.example:5001=/ mirror.example:5000=/" {
		t.Errorf("a login went to another port, or was not removed: %s", got)
	}
	change()
	if got := logins(); got != "registry-user/registry-password mirror.example:5001=/ mirror.example:5000=/" {
		t.Errorf("without a list, agents get %s", got)
	}
	many := make([]image.RegistryMirrorInput, 9)
	for n := range many {
		many[n].Host = fmt.Sprint("m", n, ".example")
	}
	for what, list := range map[string][]image.RegistryMirrorInput{
		"too many":         many,
		"one twice":        {{Host: "m.example"}, {Host: "M.example"}},
		"a URL":            {{Host: "https://m.example"}},
		"a path":           {{Host: "m.example/../x"}},
		"half a login":     {{Host: "m.example", Username: new("robot")}},
		"a line in a name": {{Host: "m.example", Username: new("a\r\nX: y"), Password: new("p")}},
	} {
		_, err := s.UpdateRegistry(root, image.UpdateRegistryInput{ID: row.ID, RegistrySettings: image.RegistrySettings{Mirrors: list}})
		if err == nil || !strings.Contains(err.Error(), "mirrors") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
