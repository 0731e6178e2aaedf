package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/conformance"
)

func TestExitCodes(t *testing.T) {
	mock := filepath.Join(t.TempDir(), "mock")
	if out, err := exec.Command("go", "build", "-o", mock, "github.com/berthhq/berth/plugins/accelerator/mock").CombinedOutput(); err != nil {
		t.Fatalf("build mock: %v\n%s", err, out)
	}
	config := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(config, []byte(`{"devices": 3, "faults": {"unhealthy": "gpu-1 unhealthy fan stopped"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, []byte("name: mock-4\nplugin: mock\nconfig: {devices: 2}\nexpect: {devices: 3, allocatable: 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want int
		last string
	}{
		"on two machines": {[]string{"--only", "snapshot,expected", "--fixture", other, "--fixture", "mock-4", mock}, 1, "3 passed, 1 failed, 0 skipped"},
		"passes":          {[]string{mock, "--only", "describe,snapshot"}, 0, "2 passed, 0 failed, 0 skipped"},
		"on a machine":    {[]string{"--only", "snapshot,expected", "--fixture", "mock-4", "--fixture", "mock-4", mock}, 0, "4 passed, 0 failed, 0 skipped"},
		"no machine":      {[]string{"--fixture", "nonsense", mock}, 2, ""},
		"two hardwares":   {[]string{"--fixture", "mock-4", "--root", "/", mock}, 2, ""},
		"table and one":   {[]string{"--plugins", filepath.Dir(mock), mock}, 2, ""},
		"no plugins":      {[]string{"--plugins", "/nonexistent"}, 2, ""},
		"rejected":        {[]string{"--only", "prepare-rejected,health", mock, "--config", config}, 0, "2 passed, 0 failed, 0 skipped"},
		"lies":            {[]string{"--only", "snapshot", "--config", `{"faults":{"lie":"negative"}}`, mock}, 1, "0 passed, 1 failed, 0 skipped"},
		"no hardware":     {[]string{"--only", "prepare", "--config", `{"devices":0}`, mock}, 0, "0 passed, 0 failed, 1 skipped"},
		"no plugin":       {[]string{"--only", "describe", "/bin/true"}, 1, "0 passed, 1 failed, 0 skipped"},
		"missing":         {[]string{"/no/such/file"}, 2, ""},
		"unknown check":   {[]string{"--only", "nonsense", mock}, 2, ""},
		"no argument":     {nil, 2, ""},
		"two binaries":    {[]string{mock, mock}, 2, ""},
		"unknown flag":    {[]string{"--nonsense", mock}, 2, ""},
		"list":            {[]string{"--list"}, 0, ""},
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
			for _, l := range lines[:len(lines)-1] {
				if tc.last != "" && !strings.HasPrefix(l, "on ") && !regexp.MustCompile(`^(pass|FAIL|skip)  [a-z-]+ +\d+\.\d\ds`).MatchString(l) {
					t.Errorf("line %q is not a check's", l)
				}
			}
		})
	}
}
