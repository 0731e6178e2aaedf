// Package driver makes a plugin of what differs between storage products: how a
// scope is made, limited and measured. Everything that is the same for all is
// here: options and their schema, the volumes that are open, whether the mount is
// still the one that was opened, one creation at a time, capabilities, errors.
//
// A plugin's main is
//
//	func main() {
//		driver.Run(driver.Backend[options]{Vendor: "ACME", Name: "acme", Version: "1.0.0", Open: open})
//	}
//
// where open returns a Volume. Most embed *Mount, which gives them Health, Capacity
// and ListScopes of a mounted file system, or *Directory, which is a whole Volume
// of plain directories with limits that only the proxy keeps.
package driver

import (
	"context"
	"iter"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Backend is one vendor's. O is a struct with the options of a volume: see Schema.
type Backend[O any] struct {
	Vendor  string // for people
	Name    string // in a volume's configuration: "netapp"
	Version string
	// Defaults are the options where none are given.
	Defaults O
	// Open makes a volume ready to be used. It may ask the product, within the
	// context, and does not write to the mount. It is called again with every
	// OpenVolume: what the product lacks today may be there tomorrow.
	Open func(ctx context.Context, m *Mount, o O) (Volume, error)
}

// Volume is one open volume. Calls come concurrently and end with their context;
// those that change one scope come one after the other. The kit has checked
// the names of scopes, the limits against Traits, and that the volume is mounted.
//
// Errors that carry a gRPC status keep it (status.Errorf, rest.Error, Retryable),
// those of the operating system get theirs by Error; all others are INTERNAL.
type Volume interface {
	Traits() Traits
	Health(ctx context.Context) (*pb.HealthReport, error)
	// CreateScope makes a scope that does not exist, or what is missing of one
	// whose making was cut off: it may be repeated. What another proxy made in
	// the same moment is not an error.
	CreateScope(ctx context.Context, scope string, limit *pb.Limit) error
	// GetScope tells limit and usage; scope and path are filled in by the kit.
	// An absent scope is NOT_FOUND.
	GetScope(ctx context.Context, scope string) (*pb.Scope, error)
	// SetScopeLimit replaces the limits of a scope that exists. It is not called
	// without limits in Traits.
	SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error
	// DeleteScope removes an empty scope. FAILED_PRECONDITION while something is in
	// it; an absent one is a success.
	DeleteScope(ctx context.Context, scope string) error
	// Close lets go of the product. No call is under way then, and none comes.
	Close() error
}

// Traits are what holds of an open volume until it is opened again.
type Traits struct {
	// Enforcement is how well limits are kept; NONE (or nothing) = there are none.
	Enforcement pb.Enforcement
	// Inodes says that numbers of files can be limited; NoBytes that bytes cannot.
	Inodes, NoBytes bool
	// Lacks are capabilities that the volume has methods for but the product does
	// not have today: no licence, an older version, a program that is not there.
	Lacks []pb.Capability
}

// What a Volume may do beside. Each is a capability.

// Sizer is CAPACITY.
type Sizer interface {
	Capacity(ctx context.Context) (*pb.CapacityReport, error)
}

// Meter is METRICS: rates over a window, never counters.
type Meter interface {
	Performance(ctx context.Context) (*pb.PerformanceSample, error)
}

// Lister is LIST_SCOPES. Scope names the scope; limit and usage may be left out
// where they cost a call for each.
type Lister interface {
	ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error]
}

// Paths of trees are checked: a scope's name, or below it. They hold no "..",
// but links may have been planted in them: Mount.OpenTree does not follow those.

// Measurer is USAGE_FAST.
type Measurer interface {
	TreeUsage(ctx context.Context, path string) (*pb.TreeUsageReport, error)
}

// Progress takes what has been done so far. The kit sends it on, not too often,
// and the last message itself.
type Progress func(*pb.Progress)

// Copier is COPY. The target does not exist when CopyTree begins, and the kit
// removes it when CopyTree fails.
type Copier interface {
	CopyTree(ctx context.Context, from, to string, report Progress) error
}

// Cloner is CLONE: a copy that shares its blocks until one side writes.
type Cloner interface {
	CloneTree(ctx context.Context, from, to string, report Progress) error
}

// Deleter is DELETE. An absent tree is a success.
type Deleter interface {
	DeleteTree(ctx context.Context, path string, report Progress) error
}

// Scanner is SCAN: all entries below a tree, in no order.
type Scanner interface {
	ScanTree(ctx context.Context, path string) iter.Seq2[*pb.Entry, error]
}

// Mounter is PER_SCOPE_MOUNT.
type Mounter interface {
	MountPlan(ctx context.Context, scope string) (*pb.MountSpec, error)
}

// Run is the main of a plugin.
func Run[O any](b Backend[O]) { volume.Serve(New(b)) }
