package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
)

func TestConformance(t *testing.T) {
	binary := filepath.Join(t.TempDir(), key)
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"sn30-8", "sn40l-16"} {
		t.Run(name, func(t *testing.T) {
			acceleratortest.Test(t, acceleratortest.Plugin{Path: binary, Fixture: name})
		})
	}
}
