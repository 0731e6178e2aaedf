// Package volumetest is the conformance suite of the volume contract. It calls a plugin's program
// as the storage proxy would, and verifies the plugin's responses on the disk. Vendors run it from
// a test (Test) or with the command berth-volume-conformance, which are equivalent.
package volumetest

import (
	"context"
	"slices"
	"time"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Plugin describes the plugin to test.
type Plugin struct {
	Path string   // the program
	Env  []string // added to the plugin's environment
	// Options is options_json; empty = the plugin's defaults.
	Options string
	// Mount is the writable mount point of the product. Every check creates its own scopes there
	// and removes them. Empty = a new directory for each check, for plugins that need no product.
	Mount       string
	Environment Environment
}

// Environment describes the environment of the suite. The suite runs where the volume is mounted:
// on this machine, in a namespace, or in another kernel.
type Environment struct {
	// UID is the unprivileged user that writes like sessions do; 0 = 65534.
	UID int
	// As runs f with the privileges of that user; nil = in a thread of this process that changes to
	// the user, which requires root.
	As func(uid int, f func() error) error
	// Tolerance is the maximum ratio of stored bytes to the limit, such as 1.01. 0 = 1.02 for HARD
	// and 1.5 for DELAYED enforcement.
	Tolerance float64
	// Timeout limits the wait until the product shows a change; 0 = a minute.
	Timeout time.Duration
	// Pause is the delay of writers after every 4 MiB and every 20 files, for products that stop
	// them with a delay: the stored excess depends on the bytes written in that time.
	Pause time.Duration
	// NoBind means that the product does not work on a bind mount, which the suite uses to take a
	// volume away from a plugin.
	NoBind bool
	// NoInodes means that the simulated product does not count files although the real one does.
	NoInodes bool
	// Names means that the product counts a file once for each of its names.
	Names bool
	// Lengths means that the mount shows lengths of files instead of stored bytes, so that a sparse
	// file looks as large as a full one.
	Lengths bool
}

// Check is one requirement of the contract.
type Check struct {
	Name string
	Want string // the requirement in one line
	run  func(context.Context, *bench) error
}

// Checks returns all checks in the order of the report.
func Checks() []Check {
	return slices.Concat(startChecks, optionChecks, volumeChecks, mountChecks, scopeChecks, limitChecks,
		usageChecks, treeChecks, cloneChecks, processChecks, effectChecks)
}

// Bare reports whether a check only needs the program and no product.
func (c Check) Bare() bool {
	return slices.ContainsFunc(startChecks, func(s Check) bool { return s.Name == c.Name })
}

func has(r *pb.OpenVolumeResponse, c pb.Capability) bool {
	return slices.Contains(r.GetCapabilities(), c)
}

func limited(r *pb.OpenVolumeResponse) bool {
	return has(r, pb.Capability_QUOTA_BYTES) || has(r, pb.Capability_QUOTA_INODES)
}
