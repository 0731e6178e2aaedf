// Package vmtest runs tests of kernel features in test environments: it repeats a subtest in every
// available kernel.
package vmtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/testvm"
)

// Required in the environment makes a test fail if no environment is available. Otherwise the test
// is skipped with the reasons.
const Required = "BERTH_TEST_VMS_REQUIRED"

// insideKey is set in the environment of a test inside a VM.
const insideKey = "BERTH_TEST_VM_INSIDE"

func inside() bool { return os.Getenv(insideKey) != "" }

// Machine describes the requirements of a test.
type Machine struct {
	testvm.Machine
	// Programs are built on the host: name to Go package.
	Programs map[string]string
	// Kinds are the suitable environments; empty = all.
	Kinds []testvm.Kind
}

// Environment is the environment in which a test runs.
type Environment struct {
	Kind testvm.Kind
	dir  string // of the programs
	at   func(disk string) string
}

// Program returns the path of one of the machine's programs.
func (p Environment) Program(name string) string { return filepath.Join(p.dir, name) }

// Mount returns the mount point of one of the machine's disks.
func (p Environment) Mount(disk string) string { return p.at(disk) }

// Main must be called from a package's TestMain. It runs the tests.
func Main(m *testing.M) {
	testvm.Init()
	os.Exit(m.Run())
}

// Each runs f as one subtest in each available environment. The package's TestMain must call Main.
func Each(t *testing.T, m Machine, f func(*testing.T, Environment)) {
	t.Helper()
	if inside() {
		t.Run(string(testvm.UML), func(t *testing.T) { f(t, Environment{testvm.UML, testvm.Share, testvm.Mounted}) })
		return
	}
	if testing.Short() {
		t.Skip("test VMs take a while, and there is no race detector inside user-mode Linux")
	}
	share := t.TempDir()
	build(t, share, m.Programs)
	kinds := m.Kinds
	if len(kinds) == 0 {
		kinds = []testvm.Kind{testvm.Loop, testvm.UML}
	}
	ran, why := false, []string{}
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			err := run(t, k, m.Machine, share, f)
			if errdefs.IsUnavailable(err) {
				why = append(why, fmt.Sprintf("%s: %s", k, err))
				t.Skipf("environment %s is not available: %s", k, err)
			}
			ran = true
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if ran {
		return
	}
	text := "no environment can run this test: " + strings.Join(why, "; ")
	if os.Getenv(Required) != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

func build(t *testing.T, dir string, programs map[string]string) {
	t.Helper()
	for name, pkg := range programs {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg).CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v: %s", pkg, err, out)
		}
	}
}

func run(t *testing.T, k testvm.Kind, m testvm.Machine, share string, f func(*testing.T, Environment)) error {
	if k == testvm.UML {
		return boot(t, m, share)
	}
	at := t.TempDir()
	down, err := testvm.MountLoop(m.Disks, share, at)
	t.Cleanup(func() {
		if err := down(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		return err
	}
	f(t, Environment{testvm.Loop, share, func(disk string) string { return filepath.Join(at, disk) }})
	return nil
}

// boot repeats the calling subtest inside a VM.
func boot(t *testing.T, m testvm.Machine, share string) error {
	levels := strings.Split(t.Name(), "/")
	for i, l := range levels {
		levels[i] = "^" + l + "$"
	}
	command := []string{"/proc/self/exe", "-test.run", strings.Join(levels, "/"), "-test.v"}
	out, err := testvm.Boot(t.Context(), m, share, command, []string{insideKey + "=1"})
	if err != nil {
		return err
	}
	if !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")) {
		return fmt.Errorf("the test did not run in the VM\n%s", out)
	}
	t.Logf("inside:\n%s", out)
	return nil
}
