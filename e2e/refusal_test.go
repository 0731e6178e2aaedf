package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

type object = map[string]any

// refusal sends a request that must be rejected, and returns the error.
func refusal(t *testing.T, c *client.Client, query string, vars object) client.GraphQLError {
	t.Helper()
	resp, err := c.Raw(t.Context(), client.Request{Query: query, Variables: vars})
	if err != nil {
		t.Fatalf("%.80s: %v", query, err)
	}
	if len(resp.Errors) == 0 {
		t.Fatalf("%.80s is not refused: %s", query, resp.Data)
	}
	return resp.Errors[0]
}

// refused checks the code, the field and the limit of an error. A limit of "*" stands for any
// limit. The error must not contain internal details of the server.
func refused(t *testing.T, e client.GraphQLError, code, field, limit string) {
	t.Helper()
	got := ""
	if e.Extensions.Limit != nil {
		got = fmt.Sprint(e.Extensions.Limit)
	}
	if e.Extensions.Code != code || e.Extensions.Field != field || limit != "*" && got != limit || limit == "*" && got == "" {
		t.Errorf("refused as %s, field %q, limit %q; want %s, field %q, limit %q: %s", e.Extensions.Code, e.Extensions.Field, got, code, field, limit, e.Message)
	}
	if e.Extensions.RequestID == "" {
		t.Error("a refusal without the request's id")
	}
	for _, secret := range []string{"SELECT", "pq:", "ERROR:", "goroutine", "/berth-e2e-", ".go:", "SQLSTATE"} {
		if strings.Contains(e.Message, secret) {
			t.Errorf("the message contains %q: %s", secret, e.Message)
		}
	}
}

const (
	createSession = `mutation($input: CreateSessionInput!) { createSession(input: $input) { session { id } } }`
	createVfolder = `mutation($input: CreateVfolderInput!) { createVfolder(input: $input) { vfolder { id } } }`
	createUpload  = `mutation($input: CreateUploadInput!) { createUpload(input: $input) { uploads { url ticket } } }`
)

// Requests that cannot run are rejected at once, with the field and the limit.
func TestBadSessions(t *testing.T) {
	u := platform.User(t)
	if _, err := u.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "data"}); err != nil {
		t.Fatal(err)
	}
	taken := cluster.Interactive()
	taken.Name = "taken"
	u.Run(taken)
	slots := func(pairs ...string) object {
		m := object{"cpu": "0.1", "mem": "64m"}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return object{"slots": m}
	}
	mount := func(m object) object {
		if m["vfolder"] == nil {
			m["vfolder"] = "data"
		}
		return object{"mounts": []object{m}}
	}
	for _, tt := range []struct {
		name               string
		change             object
		code, field, limit string
	}{
		{"unknown image", object{"image": "no-such-image:1"}, "NOT_FOUND", "image", ""},
		{"an image name of 10,000 characters", object{"image": strings.Repeat("a", 10_000)}, "INVALID_ARGUMENT", "image", "*"},
		{"negative slot", slots("cpu", "-1"), "INVALID_ARGUMENT", "slots.cpu", "0"},
		{"zero slot", slots("mem", "0"), "INVALID_ARGUMENT", "slots.mem", "0"},
		{"more than any agent has", slots("cpu", "4096"), "INVALID_ARGUMENT", "slots.cpu", "*"},
		{"more than any device has", slots("mock.shares", "2.5"), "INVALID_ARGUMENT", "slots.mock.shares", "2"},
		{"fraction of a whole device", slots("mock.device", "0.5"), "INVALID_ARGUMENT", "slots", ""},
		{"finer than the smallest step", slots("mock.shares", "0.001"), "INVALID_ARGUMENT", "slots.mock.shares", "0.01"},
		{"unknown slot", slots("warp.drive", "1"), "INVALID_ARGUMENT", "slots.warp.drive", ""},
		{"no number", slots("cpu", "many"), "INVALID_ARGUMENT", "slots", ""},
		{"exponent", slots("cpu", "1e9"), "INVALID_ARGUMENT", "slots", ""},
		{"batch without a command", object{"type": "BATCH"}, "INVALID_ARGUMENT", "command", ""},
		{"name of a live session", object{"name": "taken"}, "ALREADY_EXISTS", "name", ""},
		{"name with a path", object{"name": "../escape"}, "INVALID_ARGUMENT", "name", ""},
		{"name with markup", object{"name": "<script>"}, "INVALID_ARGUMENT", "name", ""},
		{"name of 10,000 characters", object{"name": strings.Repeat("n", 10_000)}, "INVALID_ARGUMENT", "name", "*"},
		{"variable of the platform", object{"environment": object{"BERTH_X": "1"}}, "INVALID_ARGUMENT", "environment", ""},
		{"invalid name of a variable", object{"environment": object{"A=B": "1"}}, "INVALID_ARGUMENT", "environment", ""},
		{"mount over /proc", mount(object{"target": "/proc"}), "INVALID_ARGUMENT", "mounts[0].target", ""},
		{"mount below /sys", mount(object{"target": "/sys/fs"}), "INVALID_ARGUMENT", "mounts[0].target", ""},
		{"mount over /", mount(object{"target": "/"}), "INVALID_ARGUMENT", "mounts[0].target", ""},
		{"mount at a path with ..", mount(object{"target": "/data/../etc"}), "INVALID_ARGUMENT", "mounts[0].target", ""},
		{"mount of a subpath with ..", mount(object{"subpath": "../../other"}), "INVALID_ARGUMENT", "mounts[0].subpath", ""},
		{"mount of a missing folder", mount(object{"vfolder": "nothing"}), "NOT_FOUND", "mounts[0].vfolder", ""},
		{"priority beyond", object{"priority": 101}, "INVALID_ARGUMENT", "priority", "0..100"},
		{"a bootstrap script of 1 MB", object{"bootstrapScript": strings.Repeat("#", 900_000)}, "INVALID_ARGUMENT", "bootstrapScript", "65536"},
		{"another project", object{"project": platform.User(t).Project}, "NOT_FOUND", "project", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			input := object{"image": "minimal:1", "slots": object{"cpu": "0.1", "mem": "64m"}}
			for k, v := range tt.change {
				input[k] = v
			}
			refused(t, refusal(t, u.Client, createSession, object{"input": input}), tt.code, tt.field, tt.limit)
		})
	}
	all, err := u.Sessions(t.Context(), client.SessionFilter{})
	if err != nil || len(all) != 1 {
		t.Errorf("%d sessions after all refusals, want the first one (%v)", len(all), err)
	}
}

// Names of folders and paths in folders are checked.
func TestBadFolders(t *testing.T) {
	u := platform.User(t)
	f, err := u.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "data"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "..", ".", "", "a/b", "a\x00b", "-rf", strings.Repeat("x", 65), "a\u202eb"} {
		t.Run(fmt.Sprintf("name %.20q", name), func(t *testing.T) {
			e := refusal(t, u.Client, createVfolder, object{"input": object{"name": name}})
			if e.Extensions.Code != "INVALID_ARGUMENT" || e.Extensions.Field != "name" {
				t.Errorf("%+v", e)
			}
		})
	}
	refused(t, refusal(t, u.Client, createVfolder, object{"input": object{"name": "data"}}), "ALREADY_EXISTS", "name", "")
	for _, path := range []string{"../x", "a/../../x", "/etc/passwd", "", ".", "a\x00b", strings.Repeat("d/", 3000) + "f"} {
		t.Run(fmt.Sprintf("path %.20q", path), func(t *testing.T) {
			e := refusal(t, u.Client, createUpload, object{"input": object{"vfolder": f.ID, "files": []object{{"path": path, "size": 1}}}})
			if e.Extensions.Code != "INVALID_ARGUMENT" {
				t.Errorf("upload: %+v", e)
			}
			if _, err := u.CreateDirectories(t.Context(), f.ID, []string{path}); err == nil {
				t.Error("the directory was created")
			}
			if path == "" || path == "." {
				return
			}
			if _, err := u.Files(t.Context(), f.ID, path); err == nil {
				t.Error("the directory is listed")
			}
			query := `mutation($input: CreateDownloadInput!) { createDownload(input: $input) { url } }`
			refusal(t, u.Client, query, object{"input": object{"vfolder": f.ID, "path": path}})
		})
	}
	for _, size := range []int64{-1, 1 << 60} {
		e := refusal(t, u.Client, createUpload, object{"input": object{"vfolder": f.ID, "files": []object{{"path": "x", "size": size}}}})
		if e.Extensions.Code != "INVALID_ARGUMENT" && e.Extensions.Code != "RESOURCE_EXHAUSTED" {
			t.Errorf("a file of %d bytes: %+v", size, e)
		}
	}
}

// The command line explains the error, and exits with the code of the error's class.
func TestBadCommands(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	if err := os.WriteFile(filepath.Join(berth.Dir, "file"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	berth.Must("folder", "create", "data")
	for _, tt := range []struct {
		command  string
		code     int
		wantText string
	}{
		{"session create no-such-image:1", 3, "image"},
		{"session create minimal:1 --cpu 4096", 6, "slots.cpu"},
		{"session create minimal:1 --cpu -1", 2, "cpu"},
		{"session create minimal:1 --cpu many", 2, "many"},
		{"session create minimal:1 -r warp.drive=1", 6, "warp.drive"},
		{"session create minimal:1 -r mock.device=0.5", 2, "mock.device"},
		{"session create minimal:1 -v nothing", 3, "nothing"},
		{"session create minimal:1 -v data:/proc", 6, "target"},
		{"session create minimal:1 -e BERTH_X=1", 6, "BERTH_X"},
		{"run minimal:1", 125, "command"},
		{"run no-such-image:1 -- true", 125, "image"},
		{"session show nothing", 3, "nothing"},
		{"session rm nothing", 3, "nothing"},
		{"folder create ../x", 6, "name"},
		{"folder create data", 5, "data"},
		{"folder rm nothing", 3, "nothing"},
		{"folder get data:nothing", 3, "nothing"},
		{"folder get data:../../etc/passwd", 3, ""},
		{"admin user create x@example.org --password-stdin", 4, ""},
		{"no-such-command", 2, "no-such-command"},
		{"session ls --no-such-flag", 2, "no-such-flag"},
	} {
		t.Run(tt.command, func(t *testing.T) {
			r := berth.RunWith("a password for it\n", strings.Fields(tt.command)...)
			if r.Code != tt.code || !strings.Contains(r.Stderr, tt.wantText) || r.Stdout != "" {
				t.Errorf("%+v; want %d and %q", r, tt.code, tt.wantText)
			}
			if lines := strings.Count(r.Stderr, "\n"); tt.code > 2 && lines > 3 {
				t.Errorf("the message has %d lines", lines)
			}
		})
	}
}
