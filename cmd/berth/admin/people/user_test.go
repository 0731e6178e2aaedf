package people

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestImportShowsEveryLine(t *testing.T) {
	f := newServer(t)
	f.Data("Domains", `{"domains":`+clitest.Edges(clitest.DomainVision)+`}`)
	f.Answer["ImportUsers"] = func(vars json.RawMessage) string {
		var v struct {
			Input struct {
				CSV, Domain, Passwords string
				DryRun                 bool
			}
		}
		_ = json.Unmarshal(vars, &v)
		if v.Input.CSV != "email\nkim@b\n" || v.Input.Domain != "01900000-0000-7000-8000-000000000001" || v.Input.Passwords != "GENERATED" {
			t.Errorf("asked for %s", vars)
		}
		if v.Input.DryRun {
			return `{"payload":{"created":1,"skipped":1,"failed":2,"results":[
				{"row":2,"email":"kim@b","status":"WOULD_CREATE"},
				{"row":3,"email":"lee@b","status":"SKIPPED","error":"there is a user with this e-mail"},
				{"row":4,"email":"mo","status":"FAILED","field":"email","error":"is not an e-mail address"},
				{"row":6,"email":"ni@b","status":"FAILED","error":"policy not found"}]}}`
		}
		return `{"payload":{"created":1,"skipped":0,"failed":0,"results":[{"row":2,"email":"kim@b","status":"CREATED","password":"pw-1"}]}}`
	}
	run := func(more ...string) clitest.Result {
		args := append([]string{"admin", "user", "import", "-", "--domain", "vision", "--passwords", "generated"}, more...)
		return f.RunWith(map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL}, "email\nkim@b\n", args...)
	}
	r := run("--dry-run")
	if r.Code != cli.ExitInvalid {
		t.Errorf("exit code %d", r.Code)
	}
	clitest.Golden(t, "import-preview", r.Out+r.Errors)
	r = run()
	if r.Code != 0 {
		t.Errorf("exit code %d", r.Code)
	}
	clitest.Golden(t, "import", r.Out+r.Errors)
}

func TestPurgeUser(t *testing.T) {
	f := newServer(t)
	f.Answer["Users"] = func(vars json.RawMessage) string {
		list := []string{}
		for _, u := range []string{clitest.User(clitest.IDKim, "kim@b", "INACTIVE"), clitest.User(clitest.IDLee, "lee@b", "ACTIVE")} {
			if email := strings.SplitN(u, `"`, 9)[7]; strings.Contains(string(vars), email) {
				list = append(list, u)
			}
		}
		return `{"users":` + clitest.Edges(list...) + `}`
	}
	ends := "DONE"
	task := func(status string) string {
		return fmt.Sprintf(`{"id":%q,"title":"Purge kim@b","status":%q,"done":5,"total":5,"message":"disk away","createdAt":"2026-03-04T11:00:00Z"}`, clitest.IDTask, status)
	}
	f.Answer["DeleteUser"] = func(vars json.RawMessage) string {
		if want := fmt.Sprintf(`{"input":{"id":%q,"foldersTo":%q}}`, clitest.IDKim, clitest.IDLee); string(vars) != want {
			t.Errorf("asked for %s, want %s", vars, want)
		}
		return `{"payload":{"task":` + task("RUNNING") + `}}`
	}
	f.Answer["Tasks"] = func(json.RawMessage) string { return `{"tasks":` + clitest.Edges(task(ends)) + `}` }
	purge := func(more ...string) clitest.Result {
		return f.Run(append([]string{"admin", "user", "purge"}, more...)...)
	}

	for _, step := range []struct {
		name  string
		args  []string
		code  int
		hints string
	}{
		{"without a confirmation", []string{"kim@b"}, cli.ExitUsage, "--yes"},
		{"both ways", []string{"kim@b", "--folders-to", "lee@b", "--delete-folders"}, cli.ExitUsage, "--folders-to"},
		{"who works", []string{"lee@b", "--yes"}, cli.ExitConflict, "berth admin user deactivate lee@b"},
		{"nobody", []string{"moo@b", "--yes"}, cli.ExitNotFound, "moo@b"},
	} {
		if r := purge(step.args...); r.Code != step.code || !strings.Contains(r.Errors, step.hints) {
			t.Errorf("%s: %+v", step.name, r)
		}
	}
	if n := f.Count("DeleteUser"); n != 0 {
		t.Fatalf("purged %d times", n)
	}
	if r := purge("kim@b", "--folders-to", "lee@b", "--yes"); r.Code != 0 || !strings.Contains(r.Out, "5 of 5") {
		t.Errorf("%+v", r)
	}
	ends = "FAILED"
	if r := purge("kim@b", "--folders-to", "lee@b", "--yes"); r.Code != cli.ExitConflict || !strings.Contains(r.Errors, "disk away") {
		t.Errorf("a purge that fails: %+v", r)
	}
	looked := f.Count("Tasks")
	if r := purge("kim@b", "--folders-to", "lee@b", "--yes", "--detach"); r.Code != 0 || f.Count("Tasks") != looked {
		t.Errorf("--detach waits: %+v", r)
	}
}
