package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/conformance"
	"github.com/berthhq/berth/plugins/suite"
)

func TestExitCodes(t *testing.T) {
	vfs := filepath.Join(t.TempDir(), "vfs")
	if out, err := exec.Command("go", "build", "-o", vfs, "github.com/berthhq/berth/plugins/volume/vfs").CombinedOutput(); err != nil {
		t.Fatalf("build vfs: %v\n%s", err, out)
	}
	for name, tc := range map[string]struct {
		args []string
		want int
		last string
	}{
		"passes":        {[]string{vfs, "--only", "describe,open,limit"}, 0, "3 passed, 0 failed, 0 skipped"},
		"on a mount":    {[]string{"--mount", t.TempDir(), vfs, "--only", "scope-life"}, 0, "1 passed, 0 failed, 0 skipped"},
		"bad options":   {[]string{"--options", `{"x":1}`, "--only", "open", vfs}, 1, "0 passed, 1 failed, 0 skipped"},
		"no plugin":     {[]string{"--only", "describe", "/bin/true"}, 1, "0 passed, 1 failed, 0 skipped"},
		"missing":       {[]string{"/no/such/file"}, 2, ""},
		"unknown check": {[]string{"--only", "nonsense", vfs}, 2, ""},
		"no argument":   {nil, 2, ""},
		"list":          {[]string{"--list"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if got := conformance.Run(t.Context(), contract(), tc.args, &out, &errs); got != tc.want {
				t.Errorf("exit code %d, want %d\n%s%s", got, tc.want, &out, &errs)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if tc.last != "" && lines[len(lines)-1] != tc.last {
				t.Errorf("last line %q, want %q", lines[len(lines)-1], tc.last)
			}
		})
	}
}

// An environment whose plugin is missing is an error: its checks would silently not run. Checks
// that need no product run without one.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "vfs"), "github.com/berthhq/berth/plugins/volume/vfs").CombinedOutput(); err != nil {
		t.Fatalf("build vfs: %v\n%s", err, out)
	}
	if _, err := columns(dir); err == nil || !strings.Contains(err.Error(), "btrfs") {
		t.Errorf("got %v", err)
	}
	none := stand{plugin: "vfs", env: "none", up: func(context.Context) (string, string, func() error, error) {
		return "", "", nil, errdefs.ErrUnavailable
	}}
	outcomes := map[string]suite.Outcome{}
	err := none.run(filepath.Join(dir, "vfs")).Run(t.Context(), []string{"describe", "scope-life"}, func(r suite.Result) { outcomes[r.Name] = r.Outcome })
	if err != nil {
		t.Fatal(err)
	}
	if outcomes["describe"] != suite.Passed || outcomes["scope-life"] != suite.Skipped {
		t.Errorf("without a product: %v", outcomes)
	}
}
