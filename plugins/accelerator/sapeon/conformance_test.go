package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
)

func TestConformance(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "sapeon")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tree := fixturetest.Start(t, "sapeon-1")
	acceleratortest.Test(t, acceleratortest.Plugin{Path: binary, Roots: tree.Roots(), Config: tree.Config()})
}
