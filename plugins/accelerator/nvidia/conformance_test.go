package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
)

// TestConformance runs the real binary against a real shared library that
// stands in for the driver's, so that loading it and every call's layout are
// proven too.
func TestConformance(t *testing.T) {
	root := t.TempDir()
	libs := filepath.Join(root, "driver/usr/lib64")
	if err := os.MkdirAll(libs, 0o755); err != nil {
		t.Fatal(err)
	}
	build := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	binary := filepath.Join(root, "nvidia")
	build("go", "build", "-o", binary, ".")
	build("gcc", "-shared", "-fPIC", "-o", filepath.Join(libs, "libnvidia-ml.so.1"), "testdata/nvml.c")
	if err := os.WriteFile(filepath.Join(libs, "libcuda.so.1"), []byte("library"), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := map[acceleratortest.Outcome]int{}
	p := acceleratortest.Plugin{Path: binary, Roots: &pb.Roots{Sys: root + "/sys", Dev: root + "/dev", Proc: root + "/proc", Driver: root + "/driver"}}
	err := acceleratortest.Run(t.Context(), p, nil, func(r acceleratortest.Result) {
		ran[r.Outcome]++
		if r.Outcome != acceleratortest.Passed {
			t.Errorf("%s: %s\n%s", r.Check.Name, r.Detail, r.Log)
		}
	})
	if err != nil || ran[acceleratortest.Passed] == 0 {
		t.Errorf("%v after %v", err, ran)
	}
}
