// Package driver implements a volume plugin from the parts that differ between storage products:
// how to create, limit and measure a scope. The package itself handles options and their schema,
// the open volumes, the check that the mount is still the one that was opened, serialized changes
// of a scope, capabilities and errors.
//
// A plugin's main is
//
//	func main() {
//		driver.Run(driver.Backend[options]{Vendor: "ACME", Name: "acme", Version: "1.0.0", Open: open})
//	}
//
// where open returns a Volume. Most volumes embed *Mount, which implements Health, Capacity and
// ListScopes for a mounted file system, or *Directory, which is a complete Volume of plain
// directories with limits that only the proxy enforces.
package driver

import (
	"context"
	"iter"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Backend describes a vendor's product. O is a struct with the options of a volume: see Schema.
type Backend[O any] struct {
	Vendor  string // for people
	Name    string // in a volume's configuration: "netapp"
	Version string
	// Defaults are the options that a volume does not set.
	Defaults O
	// Open prepares a volume for use. It can call the product, within the context, and must not
	// write to the mount. It is called with every OpenVolume, because the product's abilities can
	// change in between.
	Open func(ctx context.Context, m *Mount, o O) (Volume, error)
}

// Volume is one open volume. Calls are concurrent and must end with their context; those that
// change one scope are serialized. The driver package has checked the names of scopes, the limits
// against Traits, and that the volume is mounted.
//
// Errors with a gRPC status keep it (status.Errorf, rest.Error, Retryable), those of the operating
// system get theirs from Error, and all others are INTERNAL.
type Volume interface {
	Traits() Traits
	Health(ctx context.Context) (*pb.HealthReport, error)
	// CreateScope creates a scope that does not exist, or completes one whose creation was
	// interrupted: it can be repeated. If another proxy created the scope at the same moment, this
	// is not an error.
	CreateScope(ctx context.Context, scope string, limit *pb.Limit) error
	// GetScope returns limit and usage; the caller adds scope and path. It returns NOT_FOUND for a
	// missing scope.
	GetScope(ctx context.Context, scope string) (*pb.Scope, error)
	// SetScopeLimit replaces the limits of an existing scope. It is not called unless Traits has
	// limits.
	SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error
	// DeleteScope removes an empty scope. It returns FAILED_PRECONDITION if the scope is not empty,
	// and nil if it does not exist.
	DeleteScope(ctx context.Context, scope string) error
	// Close releases the product's resources. It is called after the last other call has ended.
	Close() error
}

// Traits are properties of a volume that do not change until it is opened again.
type Traits struct {
	// Enforcement is how well limits are enforced; NONE or unset means that there are none.
	Enforcement pb.Enforcement
	// Inodes means that the number of files can be limited, NoBytes that bytes cannot be limited.
	Inodes, NoBytes bool
	// Lacks are capabilities that the volume has methods for, but the product does not support at
	// present: a missing license, an older version, or a missing program.
	Lacks []pb.Capability
}

// Optional interfaces of a Volume. Each is a capability.

// Sizer implements CAPACITY.
type Sizer interface {
	Capacity(ctx context.Context) (*pb.CapacityReport, error)
}

// Meter implements METRICS: rates over a window, never counters.
type Meter interface {
	Performance(ctx context.Context) (*pb.PerformanceSample, error)
}

// Lister implements LIST_SCOPES. Scope is the name; limit and usage can be omitted if each requires
// a separate call.
type Lister interface {
	ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error]
}

// Paths of trees are checked: a scope's name or a path below it. They do not contain "..", but
// users can have created symbolic links in them, which Mount.OpenTree does not follow.

// Measurer implements USAGE_FAST.
type Measurer interface {
	TreeUsage(ctx context.Context, path string) (*pb.TreeUsageReport, error)
}

// Progress reports the work so far. The caller of the method forwards it at a limited rate, and
// sends the last message itself.
type Progress func(*pb.Progress)

// Cloner implements CLONE: a copy that shares its blocks until either side is written. The target
// does not exist when CloneTree begins, and is removed if CloneTree fails.
type Cloner interface {
	CloneTree(ctx context.Context, from, to string, report Progress) error
}

// Deleter implements DELETE. A missing tree is not an error.
type Deleter interface {
	DeleteTree(ctx context.Context, path string, report Progress) error
}

// Mounter implements PER_SCOPE_MOUNT.
type Mounter interface {
	MountPlan(ctx context.Context, scope string) (*pb.MountSpec, error)
}

// Run is the main function of a plugin.
func Run[O any](b Backend[O]) { volume.Serve(New(b)) }
