package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
)

// TestConformance runs the suite on a plugin with a description.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a plugin")
	}
	binary := filepath.Join(t.TempDir(), "acme")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile("testdata/acme.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary+".yaml", text, 0o600); err != nil {
		t.Fatal(err)
	}
	tree := fixturetest.Start(t, "testdata/acme")
	acceleratortest.Test(t, acceleratortest.Plugin{Path: binary, Roots: tree.Roots(), Config: tree.Config()})
}

// TestWithoutDescription checks that a plugin without a description has no devices and is healthy.
func TestWithoutDescription(t *testing.T) {
	spec, err := read(filepath.Join(t.TempDir(), "none.yaml"))
	if err != nil || spec.Key != "declarative" {
		t.Errorf("%+v, %v", spec, err)
	}
}
