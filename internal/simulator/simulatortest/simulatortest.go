// Package simulatortest starts simulators for tests of plugins, and compares the plugins' requests
// with golden files.
package simulatortest

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/image"
	"github.com/berthhq/berth/internal/testvm/vmtest"
)

var update = flag.Bool("update", false, "rewrite the golden files, for review")

// Start starts a simulator until the end of the test. It skips the test with the reason if this
// machine does not support it.
func Start(t testing.TB, make simulator.Factory, o simulator.Options) *simulator.Server {
	t.Helper()
	a, err := simulator.Start(t.Context(), make, o)
	keep(t, a, err)
	return a
}

// Image creates a btrfs file system until the end of the test. It skips the test with the reason if
// this machine does not support it.
func Image(t testing.TB) *image.Image {
	t.Helper()
	i, err := image.Make(t.Context())
	keep(t, i, err)
	return i
}

func keep(t testing.TB, what io.Closer, err error) {
	t.Helper()
	if errdefs.IsUnavailable(err) && os.Getenv(vmtest.Required) == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := what.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Golden compares the requests and responses since the simulator's start, or since Forget, with
// testdata/NAME.golden. go test -update writes that file.
func Golden(t testing.TB, a *simulator.Server, name string, also ...*regexp.Regexp) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	got := a.Transcript(also...)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
