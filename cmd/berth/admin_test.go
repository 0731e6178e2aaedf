package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	domainVision = `{"id":"01900000-0000-7000-8000-000000000001","name":"vision"}`
	idKim        = "01900000-0000-7000-8000-000000000002"
	idLee        = "01900000-0000-7000-8000-000000000003"
	idTask       = "01900000-0000-7000-8000-000000000004"
)

func edges(nodes ...string) string {
	for i, n := range nodes {
		nodes[i] = `{"node":` + n + `}`
	}
	return `{"edges":[` + strings.Join(nodes, ",") + `],"pageInfo":{"hasNextPage":false}}`
}

func TestImportShowsEveryLine(t *testing.T) {
	f := newFake(t)
	f.data("Domains", `{"domains":`+edges(domainVision)+`}`)
	f.answer["ImportUsers"] = func(vars json.RawMessage) string {
		var v struct {
			Input struct {
				CSV, Domain, Passwords string
				DryRun                 bool
			}
		}
		_ = json.Unmarshal(vars, &v)
		if v.Input.CSV != "email\nkim@b\n" || v.Input.Domain != "01900000-0000-7000-8000-000000000001" || v.Input.Passwords != "generated" {
			t.Errorf("asked for %s", vars)
		}
		if v.Input.DryRun {
			return `{"payload":{"created":1,"skipped":1,"failed":2,"results":[
				{"row":2,"email":"kim@b","status":"would_create"},
				{"row":3,"email":"lee@b","status":"skipped","error":"there is a user with this e-mail"},
				{"row":4,"email":"mo","status":"failed","field":"email","error":"is not an e-mail address"},
				{"row":6,"email":"ni@b","status":"failed","error":"policy not found"}]}}`
		}
		return `{"payload":{"created":1,"skipped":0,"failed":0,"results":[{"row":2,"email":"kim@b","status":"created","password":"pw-1"}]}}`
	}
	run := func(more ...string) result {
		args := append([]string{"admin", "user", "import", "-", "--domain", "vision", "--passwords", "generated"}, more...)
		return f.with(map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.url}, "email\nkim@b\n", args...)
	}
	r := run("--dry-run")
	if r.code != exitInvalid {
		t.Errorf("exit code %d", r.code)
	}
	golden(t, "import-preview", r.out+r.errors)
	r = run()
	if r.code != 0 {
		t.Errorf("exit code %d", r.code)
	}
	golden(t, "import", r.out+r.errors)
}

func user(id, email, status string) string {
	return fmt.Sprintf(`{"id":%q,"email":%q,"username":%q,"status":%q,"domain":{}}`, id, email, email[:3], status)
}

func TestPurgeUser(t *testing.T) {
	f := newFake(t)
	f.answer["Users"] = func(vars json.RawMessage) string {
		list := []string{}
		for _, u := range []string{user(idKim, "kim@b", "inactive"), user(idLee, "lee@b", "active")} {
			if email := strings.SplitN(u, `"`, 9)[7]; strings.Contains(string(vars), email) {
				list = append(list, u)
			}
		}
		return `{"users":` + edges(list...) + `}`
	}
	ends := "done"
	task := func(status string) string {
		return fmt.Sprintf(`{"id":%q,"title":"Purge kim@b","status":%q,"done":5,"total":5,"message":"disk away","createdAt":"2026-03-04T11:00:00Z"}`, idTask, status)
	}
	f.answer["PurgeUser"] = func(vars json.RawMessage) string {
		if want := fmt.Sprintf(`{"input":{"id":%q,"foldersTo":%q}}`, idKim, idLee); string(vars) != want {
			t.Errorf("asked for %s, want %s", vars, want)
		}
		return `{"payload":{"task":` + task("running") + `}}`
	}
	f.answer["Tasks"] = func(json.RawMessage) string { return `{"tasks":` + edges(task(ends)) + `}` }
	purge := func(more ...string) result { return f.berth(append([]string{"admin", "user", "purge"}, more...)...) }

	for _, step := range []struct {
		name  string
		args  []string
		code  int
		hints string
	}{
		{"without a word", []string{"kim@b"}, exitUsage, "--yes"},
		{"both ways", []string{"kim@b", "--folders-to", "lee@b", "--delete-folders"}, exitUsage, "--folders-to"},
		{"who works", []string{"lee@b", "--yes"}, exitConflict, "berth admin user deactivate lee@b"},
		{"nobody", []string{"moo@b", "--yes"}, exitNotFound, "moo@b"},
	} {
		if r := purge(step.args...); r.code != step.code || !strings.Contains(r.errors, step.hints) {
			t.Errorf("%s: %+v", step.name, r)
		}
	}
	if n := f.count("PurgeUser"); n != 0 {
		t.Fatalf("purged %d times", n)
	}
	if r := purge("kim@b", "--folders-to", "lee@b", "--yes"); r.code != 0 || !strings.Contains(r.out, "5 of 5") {
		t.Errorf("%+v", r)
	}
	ends = "failed"
	if r := purge("kim@b", "--folders-to", "lee@b", "--yes"); r.code != exitConflict || !strings.Contains(r.errors, "disk away") {
		t.Errorf("a purge that fails: %+v", r)
	}
	looked := f.count("Tasks")
	if r := purge("kim@b", "--folders-to", "lee@b", "--yes", "--detach"); r.code != 0 || f.count("Tasks") != looked {
		t.Errorf("--detach waits: %+v", r)
	}
}

func TestAuditExport(t *testing.T) {
	f := newFake(t)
	f.data("Users", `{"users":`+edges(user(idKim, "kim@b", "active"))+`}`)
	const csv = "at,action\n2026-03-04,createUser\n"
	whole := true
	f.rest = func(w http.ResponseWriter, r *http.Request) {
		if want := "actor=" + idKim + "&from=2026-03-03T12%3A00%3A00Z&result=OK"; r.URL.RawQuery != want || r.URL.Path != "/export/audit.csv" {
			t.Errorf("asked for %s?%s", r.URL.Path, r.URL.RawQuery)
		}
		fmt.Fprint(w, csv)
		if !whole {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	export := func(more ...string) result {
		return f.berth(append([]string{"admin", "audit", "export", "--since", "1d", "--actor", "kim@b", "--result", "OK"}, more...)...)
	}
	if r := export(); r.code != 0 || r.out != csv {
		t.Errorf("to standard output: %+v", r)
	}
	path := filepath.Join(t.TempDir(), "audit.csv")
	whole = false
	if r := export(path); r.code != exitUnavailable {
		t.Errorf("broken off: %+v", r)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("half a trail is left")
	}
	whole = true
	if r := export(path); r.code != 0 || r.out != "" {
		t.Errorf("to a file: %+v", r)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != csv {
		t.Errorf("%q, %v", b, err)
	}
	asked := f.count("GET /export/audit.csv")
	if r := export(path); r.code != exitConflict || f.count("GET /export/audit.csv") != asked {
		t.Errorf("over a file: %+v", r)
	}
}

func TestAllLimitsAreListed(t *testing.T) {
	f := newFake(t)
	f.data("CreateSession", `{"code":"RESOURCE_EXHAUSTED","field":"slots","limit":"2","message":"a; b","limits":[
		{"scope":"project","holder":"thesis","policy":"student","what":"cpu","used":"1.5","requested":"4","limit":"2","resourceGroup":"","withinProject":""},
		{"scope":"user","holder":"kim","policy":"big","what":"mem","used":"0","requested":"8589934592","limit":"2147483648","resourceGroup":"lab","withinProject":"thesis"},
		{"scope":"domain","holder":"vision","policy":"house","what":"pending sessions","used":"3","requested":"1","limit":"3","resourceGroup":"","withinProject":""}]}`)
	r := f.berth("session", "create", "python:3", "--cpu", "4", "--mem", "8g")
	if r.code != exitInvalid {
		t.Errorf("exit code %d", r.code)
	}
	golden(t, "limits-reached", r.out+r.errors)
}

func TestErrorsNameTheFlag(t *testing.T) {
	f := newFake(t)
	f.data("CreateResourcePolicy", `{"code":"INVALID_ARGUMENT","field":"maxSessions","message":"must be less"}`)
	if r := f.berth("admin", "policy", "create", "x", "--sessions", "7"); r.code != exitInvalid || !strings.Contains(r.errors, "see --sessions") {
		t.Errorf("%+v", r)
	}
	for line, flag := range map[string]string{
		"admin policy create x --slots cpu":            "--slots",
		"admin policy create x --sessions many":        "--sessions",
		"admin policy create x --lifetime soon":        "--lifetime",
		"admin policy attach x --user a --domain b":    "--user",
		"admin role create x --allow moon=read":        "--allow",
		"admin role grant x y":                         "--project",
		"admin volume grant v --everybody --allow fly": "--allow",
		"admin user create a@b --role boss":            "--role",
		"admin project create x --type other":          "--type",
		"admin domain update x --sign-up maybe":        "--sign-up",
		"admin group grant x":                          "--keypair",
		"admin retention set audit 0":                  "DAYS",
		"token create x --scope all":                   "--scope",
		"token create x --expires soon":                "--expires",
	} {
		if r := f.berth(strings.Fields(line)...); r.code != exitUsage || !strings.Contains(r.errors, flag) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}
