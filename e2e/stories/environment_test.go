package stories

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/berthhq/berth/e2e/cluster"
)

// A user builds an environment, a colleague builds the same one without a step, the user installs a
// tool by hand and saves the session, and the colleague starts from that image on another agent.
func TestEnvironment(t *testing.T) {
	operator := operator(t)
	group := group(t, operator, "environments", nodes())
	u, colleague := platform.User(t), platform.User(t)
	t.Cleanup(func() { endAll(t, u); endAll(t, colleague) })
	if _, err := platform.Admin(t).AddMembership(t.Context(), u.Project, colleague.ID, false); err != nil {
		t.Fatal(err)
	}
	recipe := filepath.Join(t.TempDir(), "berth.yaml")
	text := "base: minimal:1\nfiles: {/opt/tools/tool: \"echo from the recipe\"}\nrun: [\"echo built > /opt/tools/built\"]\nenv: {PLACE: harbour}\n"
	if err := os.WriteFile(recipe, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	build := func(as *cluster.User, name string) (reference, summary string) {
		t.Helper()
		out := strings.TrimSpace(as.Shell().Must("image", "build", name, recipe, "--project", u.Project, "--group", group, "--share", "--cpu", "0.5", "--mem", "512m"))
		summary = out[strings.LastIndexByte(out, '\n')+1:]
		return strings.Fields(summary)[0], summary
	}
	first, summary := build(u, "env:1")
	mustContain(t, summary, "/env:1 (steps: 2, from the cache: 0")
	if _, summary = build(colleague, "mine:1"); !strings.Contains(summary, "from the cache: 2") {
		t.Errorf("the build of a colleague: %s", summary)
	}

	in := asks(group)
	in.Image, in.Project = first, u.Project
	s := u.Run(in)
	u.Until(s.ID, "RUNNING")
	if out, code := u.Exec(s.ID, "sh /opt/tools/tool; cat /opt/tools/built; echo $PLACE; echo 'echo by hand' > /opt/tools/other"); code != 0 || out != "from the recipe\nbuilt\nharbour\n" {
		t.Fatalf("the session of the built image: %q, %d", out, code)
	}
	saved := strings.TrimSpace(u.Shell().Must("session", "commit", s.ID, "env:2", "--project", u.Project))
	elsewhere := map[string]string{"node-1": "node-2", "node-2": "node-3", "node-3": "node-1"}[on(t, u, s.ID)]
	in.Image, in.Agents = saved, []string{agentID(t, operator, elsewhere)}
	again := colleague.Run(in)
	colleague.Until(again.ID, "RUNNING")
	if out, code := colleague.Exec(again.ID, "sh /opt/tools/tool; sh /opt/tools/other; echo $PLACE"); code != 0 || out != "from the recipe\nby hand\nharbour\n" {
		t.Errorf("the colleague sees %q, %d", out, code)
	}
}

// The tags of two images move. The one that follows its tag has the new content, the other one shows
// that there is one, and one command goes back.
func TestTagsMove(t *testing.T) {
	operator, u := operator(t), platform.User(t)
	platform.OfferLayout(t, moving(t, "before"))
	operator.Must("image", "update", "moving:1", "--tag-policy", "pinned")
	before := image(t, u, "moving:1").Digest
	platform.OfferLayout(t, moving(t, "after"))
	if i := image(t, u, "moving:1"); i.Digest != before || !i.Moved || i.TagDigest == before {
		t.Errorf("the pinned image: %+v", i)
	}
	after := image(t, u, "moving:2")
	if after.Digest == before || after.Moved {
		t.Errorf("the image that follows its tag: %+v", after)
	}
	mustContain(t, u.Shell().Must("image", "ls", "moving"), "tag moved")
	mustContain(t, u.Shell().Must("image", "history", "moving:1"), "before", "after")
	operator.Must("image", "rollback", "moving:2")
	if i := image(t, u, "moving:2"); i.Digest != before || !i.Moved {
		t.Errorf("after the rollback: %+v", i)
	}
	operator.Must("image", "update", "moving:1", "--tag-policy", "follow")
	if i := image(t, u, "moving:1"); i.Digest != after.Digest || i.Moved {
		t.Errorf("after its policy has changed: %+v", i)
	}
}

// moving writes a layout with one content for two tags.
func moving(t *testing.T, label string) string {
	t.Helper()
	dir := t.TempDir()
	img, err1 := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", Config: v1.Config{Labels: map[string]string{"state": label}}})
	layer, err2 := random.Layer(100, types.OCILayer)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(img, layer)
	if err != nil {
		t.Fatal(err)
	}
	path, err := layout.Write(dir, empty.Index)
	for _, tag := range []string{"moving:1", "moving:2"} {
		if err == nil {
			err = path.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
