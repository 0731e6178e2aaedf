package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/conformance"
)

// TestEveryPlugin runs every plugin of the tree on every machine made for it, as make conformance
// does.
func TestEveryPlugin(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "github.com/berthhq/berth/plugins/accelerator/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=1") // NVIDIA's plugin links a C library
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build plugins: %v\n%s", err, out)
	}
	var out, errs bytes.Buffer
	if code := conformance.Run(t.Context(), contract(), []string{"--plugins", dir}, &out, &errs); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
	t.Log("\n" + out.String())
}

// A machine whose plugin is missing is an error: its checks would silently not run.
func TestMachineWithoutPlugin(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"other": 0o755, "template": 0o755, "README": 0o644, "liblimit.so": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	got, err := columns(dir)
	if err == nil || !strings.Contains(err.Error(), "mock-4") {
		t.Errorf("got %v", err)
	}
	if len(got) != 1 || got[0].Plugin != "other" {
		t.Errorf("got %v", got)
	}
}
