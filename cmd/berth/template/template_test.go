package template

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func newServer(t *testing.T) *clitest.Server {
	f := clitest.New(t, func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a), ApplyCommand(a)} })
	f.Data("Viewer", `{"viewer":{"user":{"id":"u1","email":"ada@example.org"},"projects":[{"id":"p1","name":"ml"}],"resourceGroups":[]}}`)
	return f
}

const asked = `{"image":"python:3.11","slots":{"cpu":"1","mem":"1073741824"},"environment":{"PORT":"8080"},"mounts":[],"tags":["x"]}`

func apply(f *clitest.Server, file string, flags ...string) clitest.Result {
	env := map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL}
	return f.RunWith(env, file, append([]string{"apply", "-f", "-"}, flags...)...)
}

const file = `kind: template
name: train
request:
  image: python:3.11
  slots: {cpu: 1, mem: 1g}
  environment: {PORT: 8080}
  tags: [x]
`

func TestApplyOfATemplate(t *testing.T) {
	f := newServer(t)
	f.Data("SessionTemplates", `{"sessionTemplates":{"edges":[],"pageInfo":{"hasNextPage":false}}}`)
	f.Data("CreateSessionTemplate", `{"payload":{"template":{"id":"t1","name":"train","request":`+asked+`}}}`)
	if r := apply(f, file, "--dry-run"); r.Code != 0 || r.Out != "template train would be created\n" || f.Count("CreateSessionTemplate") != 0 {
		t.Errorf("%+v", r)
	}
	if r := apply(f, file); r.Code != 0 || r.Out != "template train created\n" {
		t.Errorf("%+v", r)
	}
	f.Data("SessionTemplates", `{"sessionTemplates":{"edges":[{"node":{"id":"t1","name":"train","owner":{"id":"u1"},"request":`+asked+`}}],"pageInfo":{"hasNextPage":false}}}`)
	f.Data("UpdateSessionTemplate", `{"payload":{"template":{"id":"t1","name":"train","request":`+asked+`}}}`)
	if r := apply(f, file); r.Code != 0 || r.Out != "template train unchanged\n" {
		t.Errorf("%+v", r)
	}
	if r := apply(f, strings.Replace(file, "1g", "2g", 1)); r.Code != 0 || r.Out != "template train updated\n" || f.Count("UpdateSessionTemplate") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestErrorsNameDocumentLineAndField(t *testing.T) {
	f := newServer(t)
	for bad, want := range map[string]string{
		"kind: session\nname: x\nrequest:\n  imgae: a\n":           `document 1: line 4: unknown field "imgae"`,
		file + "---\nkind: pod\nname: y\n":                         `document 2 (pod y), line 9: kind: "pod" is not a kind`,
		"kind: session\n":                                          `line 1: name: must be given`,
		"kind: session\nname: x\nrequest:\n  slots: {cpu: much}\n": `line 4: request.slots`,
		"kind: session\nname: x\nrequest:\n  lifetime: long\n":     `line 4: request.lifetime`,
		"kind: template\nname: x\nproject: ml\ntemplate: y\n":      `line 4: template: is only for sessions`,
		"kind: [\n": `line `,
		"":          `has no document`,
	} {
		if r := apply(f, bad); r.Code != cli.ExitUsage && r.Code == 0 || !strings.Contains(r.Errors, want) {
			t.Errorf("%q: %+v, want %s", bad, r, want)
		}
	}
}

func TestApplyOfASession(t *testing.T) {
	f := newServer(t)
	session := strings.Replace(strings.Replace(file, "kind: template", "kind: session", 1), "train", "lab", 1)
	f.Data("Sessions", `{"sessions":{"edges":[{"node":{"id":"s1","name":"lab","status":"RUNNING"}}],"pageInfo":{"hasNextPage":false}}}`)
	f.Data("Images", `{"images":{"edges":[{"node":{"id":"i1","name":"python:3.11","reference":"r/python:3.11"}}],"pageInfo":{"hasNextPage":false}}}`)
	f.Data("SessionRequest", `{"node":{"id":"s1","name":"lab","status":"RUNNING","request":`+strings.Replace(asked, `"python:3.11"`, `"r/python:3.11","priority":10,"project":"p1"`, 1)+`}}`)
	if r := apply(f, session); r.Code != 0 || r.Out != "session lab unchanged\n" {
		t.Errorf("%+v", r)
	}
	r := apply(f, strings.Replace(session, "8080", "9090", 1))
	if r.Code == 0 || !strings.Contains(r.Errors, "environment is [PORT], and [PORT] in the file") || !strings.Contains(r.Errors, "--replace") || strings.Contains(r.Errors, "9090") {
		t.Errorf("%+v", r)
	}
	if r := apply(f, strings.Replace(session, "8080", "9090", 1), "--replace", "--dry-run"); r.Code != 0 || r.Out != "session lab would be replaced\n" {
		t.Errorf("%+v", r)
	}
}
