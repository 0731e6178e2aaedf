// Package testvm provides kernels with features that a test needs: the host's with scratch disks in
// loop devices, or user-mode Linux, which boots from Debian's package in two seconds with the
// host's files as a read-only root. If an environment is not available, the error is Unavailable
// (errdefs) and contains the reason. Tests use package vmtest. docs/storage/test-environments.md
// documents the environments.
package testvm

import (
	"path/filepath"

	"github.com/containerd/errdefs"
)

// Kind is the name of an environment, which is printed with its results.
type Kind string

// The environments.
const (
	Loop Kind = "host-loop" // the host's kernel, with disk images in loop devices
	UML  Kind = "uml"       // user-mode Linux
)

// Machine describes the requirements of a program.
type Machine struct {
	Disks   []Disk
	Modules []string // of the kernel, loaded with their dependencies
	Tools   []string // programs of the host that are run inside
}

// Share is the path in a VM of the directory that was passed to Boot.
const Share = "/run/share"

const diskDir = "/run/disk"

// Mounted returns the mount point of a disk in a VM that Boot started.
func Mounted(disk string) string { return filepath.Join(diskDir, disk) }

// impossible is the reason why an environment is not available.
type impossible string

func (i impossible) Error() string { return string(i) }
func (i impossible) Unwrap() error { return errdefs.ErrUnavailable }
