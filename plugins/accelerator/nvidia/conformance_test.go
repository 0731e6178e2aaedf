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
// proven too, in every way to enforce parts of a GPU.
func TestConformance(t *testing.T) {
	root := t.TempDir()
	at := func(elem ...string) string { return filepath.Join(append([]string{root}, elem...)...) }
	for _, dir := range []string{"driver/usr/lib64", "lib", "bin", "dev/shm"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	build("go", "build", "-o", at("bin/nvidia"), ".")
	build("limit/lib/build.sh", at("lib/libberthlimit.so"))
	build("cc", "-shared", "-fPIC", "-o", at("driver/usr/lib64/libnvidia-ml.so.1"), "testdata/nvml.c")
	for file, text := range map[string]string{"driver/usr/lib64/libcuda.so.1": "library", "bin/nvidia-cuda-mps-control": fakeControl} {
		if err := os.WriteFile(at(file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, how := range []string{"", advisory, limited, mps} {
		t.Run("enforcement "+how, func(t *testing.T) {
			if how == mps && os.Geteuid() != 0 {
				t.Skip("MPS servers are started by root")
			}
			p := acceleratortest.Plugin{Path: at("bin/nvidia"), Roots: &pb.Roots{
				Sys: at("sys"), Dev: at("dev"), Proc: at("proc"), Driver: at("driver"), Path: []string{at("bin"), "/usr/bin", "/bin"},
			}}
			if how != "" {
				p.Config = []byte(`{"enforcement": "` + how + `"}`)
			}
			ran := map[acceleratortest.Outcome]int{}
			err := acceleratortest.Run(t.Context(), p, nil, func(r acceleratortest.Result) {
				ran[r.Outcome]++
				switch r.Outcome {
				case acceleratortest.Skipped:
					t.Logf("%s: skipped: %s", r.Check.Name, r.Detail)
				case acceleratortest.Failed:
					t.Errorf("%s: %s\n%s", r.Check.Name, r.Detail, r.Log)
				}
			})
			if err != nil || ran[acceleratortest.Passed] < 30 {
				t.Errorf("%v after %v", err, ran)
			}
			t.Logf("%d passed, %d failed, %d skipped", ran[acceleratortest.Passed], ran[acceleratortest.Failed], ran[acceleratortest.Skipped])
		})
	}
}
