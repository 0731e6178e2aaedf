package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
)

// hgx is a machine of package fixture. Its NVML is a shared library that is loaded like the
// driver's, so that the layout of every call is tested.
const hgx = "hgx-h100-8"

func TestConformance(t *testing.T) {
	acceleratortest.Test(t, acceleratortest.Plugin{Path: install(t), Fixture: hgx})
}

// TestConformanceOfLevels runs the suite without changes of the machine, for every enforcement
// mechanism.
func TestConformanceOfLevels(t *testing.T) {
	binary := install(t)
	for _, how := range []string{"", limited, mps} {
		t.Run("enforcement "+how, func(t *testing.T) {
			if how == mps && os.Geteuid() != 0 {
				t.Skip("MPS servers are started by root")
			}
			tree := fixturetest.Start(t, hgx)
			if err := os.WriteFile(filepath.Join(tree.Dir, "path", mpsControl), []byte(fakeControl), 0o755); err != nil {
				t.Fatal(err)
			}
			roots := tree.Roots()
			roots.Path = append(roots.Path, "/usr/bin", "/bin")
			p := acceleratortest.Plugin{Path: binary, Roots: roots}
			if how != "" {
				p.Config = []byte(`{"enforcement": "` + how + `"}`)
			}
			acceleratortest.Test(t, p)
		})
	}
}

// install builds the plugin and the library of the limit in the layout of an installation.
func install(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"lib", "bin"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(root, "bin/nvidia")
	for _, args := range [][]string{
		{"go", "build", "-o", binary, "."},
		{"limit/lib/build.sh", filepath.Join(root, "lib/libberthlimit.so")},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args[0], err, out)
		}
	}
	return binary
}
