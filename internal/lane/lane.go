// Package lane runs a test where the kernel has what the test needs: on this
// machine over a scratch disk in a loop device, and inside user-mode Linux,
// which boots from Debian's package in two seconds with this machine's files
// as its read-only root. A lane that cannot run here says why. docs/storage/lanes.md
// says which lane proves what.
package lane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Kind is a lane's name, as it is printed beside what was proven in it.
type Kind string

// The lanes.
const (
	Loop Kind = "host-loop" // this machine's kernel, a disk image in a loop device
	UML  Kind = "uml"       // user-mode Linux
)

// Required, set in the environment, makes a test fail that no lane could run;
// without it the test is skipped with the reasons.
const Required = "BERTH_LANES_REQUIRED"

// Machine is what a test needs around it.
type Machine struct {
	Disks   []Disk
	Modules []string // of the kernel, loaded with those they depend on
	// Programs are built outside: name to Go package.
	Programs map[string]string
	// Kinds are the lanes that will do; empty = every one.
	Kinds []Kind
}

// Place is where a test runs.
type Place struct {
	Kind Kind
	dir  string // of the programs
	disk string // of the mount points
}

// Program is the path of one of the machine's programs.
func (p Place) Program(name string) string { return filepath.Join(p.dir, name) }

// Mount is where one of the machine's disks is mounted.
func (p Place) Mount(disk string) string { return filepath.Join(p.disk, disk) }

// impossible is why a lane cannot run on this machine.
type impossible string

func (i impossible) Error() string { return string(i) }

// Each runs f as one subtest for each lane that can be had here. The package's
// TestMain must call Main.
func Each(t *testing.T, m Machine, f func(*testing.T, Place)) {
	t.Helper()
	if inside() {
		t.Run(string(UML), func(t *testing.T) { f(t, Place{Kind: UML, dir: shareDir, disk: diskDir}) })
		return
	}
	if testing.Short() {
		t.Skip("lanes take a while, and inside user-mode Linux there is no race detector")
	}
	share, err := shared(t, m)
	if err != nil {
		t.Fatal(err)
	}
	ran, why := false, []string{}
	for _, k := range kinds(m) {
		t.Run(string(k), func(t *testing.T) {
			err := run(t, k, m, share, f)
			var no impossible
			if errors.As(err, &no) {
				why = append(why, fmt.Sprintf("%s: %s", k, no))
				t.Skipf("lane %s is impossible here: %s", k, no)
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
	text := "no lane can run this test here: " + strings.Join(why, "; ")
	if os.Getenv(Required) != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

func kinds(m Machine) []Kind {
	if len(m.Kinds) > 0 {
		return m.Kinds
	}
	return []Kind{Loop, UML}
}

func run(t *testing.T, k Kind, m Machine, share string, f func(*testing.T, Place)) error {
	if k == UML {
		return boot(t, m, share)
	}
	at := t.TempDir()
	if err := mountLoop(t, m.Disks, share, at); err != nil {
		return err
	}
	f(t, Place{Kind: Loop, dir: share, disk: at})
	return nil
}

// shared makes the directory that both sides see: programs, disks, the job and
// what comes of it.
func shared(t *testing.T, m Machine) (string, error) {
	dir := t.TempDir()
	for name, pkg := range m.Programs {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg).CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w: %s", pkg, err, out)
		}
	}
	return dir, nil
}
