package open

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func newServer(t *testing.T) *clitest.Server {
	f := clitest.New(t, func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a)} })
	f.Data("Viewer", `{"viewer":{"user":{"id":"me","email":"a@b"},"projects":[]}}`)
	f.Data("Sessions", `{"sessions":{"edges":[{"node":{"id":"s1","name":"train"}}],"pageInfo":{}}}`)
	f.Data("Vfolders", `{"vfolders":{"edges":[],"pageInfo":{}}}`)
	f.Data("Deployments", `{"deployments":{"edges":[],"pageInfo":{}}}`)
	return f
}

func TestOpen(t *testing.T) {
	f := newServer(t)
	for want, args := range map[string][]string{
		"/":              {"open"},
		"/account/usage": {"open", "usage"},
		"/sessions":      {"open", "sessions", "--url"},
		"/sessions/s1":   {"open", "train"},
	} {
		if r := f.Run(args...); r.Code != 0 || r.Out != f.URL+want+"\n" {
			t.Errorf("%v: %+v, want %s", args, r, want)
		}
	}
	if r := f.Run("open", "train", "-o", "json"); !strings.Contains(r.Out, `"url": "`+f.URL+`/sessions/s1"`) {
		t.Errorf("as JSON: %+v", r)
	}
}

func TestOpenOneOfSeveral(t *testing.T) {
	f := newServer(t)
	f.Data("Vfolders", `{"vfolders":{"edges":[{"node":{"id":"f1","name":"train"}}],"pageInfo":{}}}`)
	if r := f.Run("open", "train"); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "folder and of a session") {
		t.Errorf("two kinds: %+v", r)
	}
	if r := f.Run("open", "train", "--kind", "folder"); r.Out != f.URL+"/data/f1\n" {
		t.Errorf("a folder: %+v", r)
	}
	if r := f.Run("open", "train", "--kind", "disk"); r.Code != cli.ExitUsage {
		t.Errorf("an unknown kind: %+v", r)
	}
	f.Data("Sessions", `{"sessions":{"edges":[],"pageInfo":{}}}`)
	f.Data("Vfolders", `{"vfolders":{"edges":[],"pageInfo":{}}}`)
	if r := f.Run("open", "gone"); r.Code == 0 || !strings.Contains(r.Errors, `no session, folder or deployment "gone"`) {
		t.Errorf("nothing: %+v", r)
	}
}
