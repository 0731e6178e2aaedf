// Package testvm gives a program the kernel it needs: this machine's own with scratch
// disks in loop devices, or user-mode Linux, which boots from Debian's package in two
// seconds with this machine's files as its read-only root. A lane that is impossible
// here is an error that errdefs.IsUnavailable knows, and says why. Tests use package
// vmtest. docs/storage/test-environments.md says which lane proves what.
package testvm

import (
	"path/filepath"

	"github.com/containerd/errdefs"
)

// Kind is a lane's name, as it is printed beside what was proven in it.
type Kind string

// The lanes.
const (
	Loop Kind = "host-loop" // this machine's kernel, a disk image in a loop device
	UML  Kind = "uml"       // user-mode Linux
)

// Machine is what a program needs around it.
type Machine struct {
	Disks   []Disk
	Modules []string // of the kernel, loaded with those they depend on
	Tools   []string // programs of this machine that are run inside
}

// Share is where a machine that Boot started sees the directory it was given, Mounted
// where it has one of its disks.
const Share = "/run/share"

const diskDir = "/run/disk"

// Mounted is where a machine that Boot started has mounted a disk.
func Mounted(disk string) string { return filepath.Join(diskDir, disk) }

// impossible is why a lane cannot run on this machine.
type impossible string

func (i impossible) Error() string { return string(i) }
func (i impossible) Unwrap() error { return errdefs.ErrUnavailable }
