// Package volumetest is the conformance suite of the volume contract. It
// drives a plugin's binary as the storage proxy would, and looks at the disk for
// what the plugin says has happened. A vendor runs it from a test (Test) or with
// the command berth-volume-conformance; both do the same.
package volumetest

import (
	"context"
	"slices"
	"time"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Plugin says what to test.
type Plugin struct {
	Path string   // the binary
	Env  []string // added to the plugin's environment
	// Options is options_json; empty = the plugin's defaults.
	Options string
	// Mount is where the product is mounted and may be written to; every check
	// makes scopes of its own there and removes them. Empty = a fresh
	// directory for each check, for plugins that need no product.
	Mount       string
	Environment Environment
}

// Environment is the circumstances that a plugin is tried in. The suite runs where the
// volume is mounted: on this machine, in a namespace, in another kernel.
type Environment struct {
	// UID writes as sessions do, without privileges; 0 = 65534.
	UID int
	// As runs f as a process of that user would; nil = in a thread of this process
	// that has become the user, which wants root.
	As func(uid int, f func() error) error
	// Tolerance is how much of a limit may be on the disk: 1.01. 0 = what the
	// enforcement promises: 1.02 when HARD, 1.5 when DELAYED.
	Tolerance float64
	// Timeout is how long the product may take until it shows what was done to it; 0
	// = a minute.
	Timeout time.Duration
	// Pause is what writers wait after every 4 MiB and every 20 files, for products that
	// stop them some time after the limit: what is stored past it is what they
	// write in that time.
	Pause time.Duration
	// NoBind says that the product does not work where its mount is bound to another
	// place, which is how the suite takes a volume away from a plugin.
	NoBind bool
	// NoInodes says that the product is made up and does not count files, though the
	// real one does.
	NoInodes bool
	// Names says that the product counts a file once for each of its names.
	Names bool
	// Lengths says that the mount shows lengths in the place of what is stored, so that a
	// hole is as large as if it were written.
	Lengths bool
}

// Check is one promise of the contract.
type Check struct {
	Name string
	Want string // what is promised, one line
	run  func(context.Context, *bench) error
}

// Checks lists the suite in the order it reports.
func Checks() []Check {
	return slices.Concat(startChecks, optionChecks, volumeChecks, mountChecks, scopeChecks, limitChecks,
		usageChecks, treeChecks, cloneChecks, processChecks, effectChecks)
}

// Bare reports whether a check needs no product: only that the program starts.
func (c Check) Bare() bool {
	return slices.ContainsFunc(startChecks, func(s Check) bool { return s.Name == c.Name })
}

func has(r *pb.OpenVolumeResponse, c pb.Capability) bool {
	return slices.Contains(r.GetCapabilities(), c)
}

func limited(r *pb.OpenVolumeResponse) bool {
	return has(r, pb.Capability_QUOTA_BYTES) || has(r, pb.Capability_QUOTA_INODES)
}
