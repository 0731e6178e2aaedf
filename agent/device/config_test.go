package device

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

func TestReadPlugins(t *testing.T) {
	read := func(text string) ([]PluginConfig, error) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "plugins.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadPlugins(file)
	}
	got, err := read(`
plugins:
  - path: /opt/p/acme
  - path: /opt/p/python
    plain: true
    force: true
    env: {B: "2", A: x}
    config: {depth: {list: [1, two]}}
    roots: {sys: /host/sys, driver: /run/acme, path: [/run/acme/bin]}
    allow: {hostIpc: true, capabilities: [CAP_IPC_LOCK], mounts: [/etc/acme]}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []PluginConfig{{Path: "/opt/p/acme", Roots: &acceleratorpb.Roots{}}, {
		Path: "/opt/p/python", Plain: true, Force: true, Env: []string{"A=x", "B=2"},
		ConfigJSON: []byte(`{"depth":{"list":[1,"two"]}}`),
		Roots:      &acceleratorpb.Roots{Sys: "/host/sys", Driver: "/run/acme", Path: []string{"/run/acme/bin"}},
		Allow:      Allow{HostIPC: true, Capabilities: []string{"CAP_IPC_LOCK"}, Mounts: []string{"/etc/acme"}},
	}}
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Error(d)
	}
	for _, row := range []struct{ text, want string }{
		{"plugins: [{path: acme}]", `plugins[0].path: "acme"`},
		{"plugins: [{path: /a}, {path: /b, roots: {dev: dev}}]", `plugins[1].roots.dev: "dev"`},
		{"plugins: [{path: /a, roots: {state: /x}}]", `unknown field "state"`},
		{"plugins: [{path: /a, roots: {path: ['']}}]", "roots.path"},
		{"plugins: [{path: /a, allow: {mounts: [/a/../b]}}]", "allow.mounts"},
		{"plugins: [{path: /a, allow: {everything: true}}]", `unknown field "everything"`},
		{"plugins: [{path: /a, sha256: abc}]", "64 of 0-9 a-f"},
	} {
		if _, err := read(row.text); !errdefs.IsInvalidArgument(err) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v; want %s", row.text, err, row.want)
		}
	}
}

// TestThePageIsTrue parses the file that the documentation shows.
func TestThePageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../docs/accelerators/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := ReadPlugins(file); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}
