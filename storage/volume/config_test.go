package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/internal/scopemount"
)

func TestRead(t *testing.T) {
	plugins := t.TempDir()
	for _, name := range []string{"btrfs", "own"} {
		if err := os.WriteFile(filepath.Join(plugins, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(plugins, "own")
	read := func(text string) ([]Config, error) {
		file := filepath.Join(t.TempDir(), "volumes.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Read(file, plugins)
	}
	got, err := read("volumes:\n- {name: home, mount: /mnt/home, plugin: btrfs, options: {quota: full, nested: {n: 1}}}\n" +
		"- {name: fast, mount: /mnt/fast, plugin: " + own + ", sha256: abc}\n" +
		"- {name: blade, mount: /mnt/blade, plugin: btrfs, scope_mount: {type: nfs, source: 's:/berth-{scope}', options: [hard]}}\n")
	want := []Config{
		{Name: "home", Backend: filepath.Join(plugins, "btrfs"), MountPath: "/mnt/home", OptionsJSON: `{"nested":{"n":1},"quota":"full"}`},
		{Name: "fast", Backend: own, MountPath: "/mnt/fast", SHA256: "abc"},
		{
			Name: "blade", Backend: filepath.Join(plugins, "btrfs"), MountPath: "/mnt/blade", Create: true,
			ScopeMount: &scopemount.Rule{Type: "nfs", Source: "s:/berth-{scope}", Options: []string{"hard"}},
		},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for _, row := range []struct{ wantText, text string }{
		{"volumes[0]", "volumes: [{name: UPPER, mount: /x, plugin: btrfs}]"},
		{"absolute", "volumes: [{name: a, mount: x, plugin: btrfs}]"},
		{"plugin is missing", "volumes: [{name: a, mount: /x}]"},
		{"is not a program", "volumes: [{name: a, mount: /x, plugin: nofs}]"},
		{"without a directory", "volumes: [{name: a, mount: /x, plugin: ../btrfs}]"},
		{"scope_mount", "volumes: [{name: a, mount: /x, plugin: btrfs, scope_mount: {type: nfs, source: 's:/one'}}]"},
		{"option", "volumes: [{name: a, mount: /x, plugin: btrfs, option: {password: hunter2}}]"},
	} {
		_, err := read(row.text)
		if !errdefs.IsInvalidArgument(err) || !strings.Contains(err.Error(), row.wantText) {
			t.Errorf("%s: %v, want %q", row.text, err, row.wantText)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error contains the value of an option: %v", err)
		}
	}
}
