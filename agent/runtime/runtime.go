// Package runtime is the seam between the agent and whatever runs containers.
// containerd is the real one, fake acts out every failure, and both pass the
// suite in runtimetest. A container is known by its id and found again by its
// labels, so that an agent that was killed finds all of its containers.
//
// Errors carry an errdefs class: NotFound for images and containers that are
// not there, AlreadyExists, InvalidArgument, FailedPrecondition, Unavailable
// while the runtime itself is down.
package runtime

import (
	"context"
	"io"
	"syscall"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/runner"
)

// Labels that every container of an agent carries.
const (
	LabelAgent       = "berth.agent"
	LabelSession     = "berth.session"
	LabelKernel      = "berth.kernel"
	LabelLaunchEpoch = "berth.launch-epoch"
)

// Runtime runs containers of one agent.
type Runtime interface {
	// Pull makes an image present, telling progress as it goes.
	Pull(ctx context.Context, r PullRequest, progress func(Progress)) (Image, error)
	// Image looks up a present image.
	Image(ctx context.Context, reference string) (Image, error)
	// Images lists what is present.
	Images(ctx context.Context) ([]Image, error)
	// Create makes a container up to the moment before its process runs.
	Create(ctx context.Context, s Spec) (Container, error)
	// Containers lists every container that carries the agent's label, in
	// whatever state.
	Containers(ctx context.Context) ([]Container, error)
	// Answers returns an error while the runtime does not answer.
	Answers(ctx context.Context) error
	Close() error
}

// Container is one container, also across restarts of agent and runtime.
type Container interface {
	ID() string
	Labels() map[string]string
	Start(ctx context.Context) error
	State(ctx context.Context) (State, error)
	// Wait returns once the container's process has ended, at once when it
	// has already. An error means that the end is not known yet, except
	// NotFound: the process is gone and took its exit code with it.
	Wait(ctx context.Context) (Exit, error)
	// Kill sends a signal to the container's first process.
	Kill(ctx context.Context, signal syscall.Signal) error
	Exec(ctx context.Context, e ExecSpec) (Process, error)
	Stats(ctx context.Context) (Stats, error)
	// Remount changes folders that the container has mounted, as mount.Apply
	// does. One that has ended has none. One of which it is not known where they
	// are is FailedPrecondition. Not for several callers at once.
	Remount(ctx context.Context, changes []mount.Change) error
	// Remove ends whatever runs and deletes everything. Removing what is gone
	// is not an error.
	Remove(ctx context.Context) error
}

// Process is a command started in a running container beside its own.
type Process interface {
	// Wait returns the exit code after all output has been written.
	Wait(ctx context.Context) (int, error)
	Kill(ctx context.Context, signal syscall.Signal) error
	Resize(ctx context.Context, columns, rows uint32) error
}

// PullRequest names an image at its registry.
type PullRequest struct {
	Reference string
	Digest    string // what Reference must resolve to, "" = anything
	PlainHTTP bool
	Username  string
	Password  string
}

// Progress of a pull. Total grows while the image's parts become known.
type Progress struct {
	Phase string // resolving, downloading, unpacking
	Done  int64
	Total int64
}

// Image is a present image. Its configuration is data for anyone who composes a
// Spec; nothing in it is obeyed here.
type Image struct {
	Reference    string
	Digest       string
	Architecture string
	Env          []string
	Entrypoint   []string
	WorkingDir   string
	User         string
}

// Spec is what a container is made of.
type Spec struct {
	ID       string
	Image    string
	Class    string // runtime class, "" = runc
	Labels   map[string]string
	Hostname string
	Args     []string
	Env      []string
	Cwd      string
	User     string // as in the image: name, uid, uid:gid, "" = root
	// Identity takes the place of User; the image's files are not asked.
	Identity *Identity
	Groups   []uint32 // of a user that is not root, beside their own
	Mounts   []specs.Mount
	Folders  []string // destinations of Mounts that Remount is for
	// Directories on the host that are given to User before the start.
	Owned []string
	// Layer is an empty directory on the host in which the container's writable layer is
	// made; "" leaves that to the runtime.
	Layer     string
	ShmBytes  int64
	Resources Resources
	// Path of a network namespace to join; "" = a new, empty one.
	NetNS      string
	CgroupPath string // absolute, below the cgroup root
	Log        runner.LogSpec
	// Edit has the last word on the OCI spec, for devices.
	Edit func(*specs.Spec) error
}

// Identity is a user by numbers.
type Identity struct {
	UID, GID uint32
	Groups   []uint32 // supplementary
}

// Resources are the limits of a container. Zero = unlimited.
type Resources struct {
	MilliCPU int64
	Memory   int64 // bytes, swap included
	Pids     int64
	CPUs     string // the processors it is kept to, such as 0-3,8
	Mems     string // the NUMA nodes that its memory comes from
}

// Phase is how far a container's process has come.
type Phase int

// The phases of a container.
const (
	Created Phase = iota
	Running
	Exited
	Gone // only its remains are there; how it ended is not known
)

// State of a container.
type State struct {
	Phase Phase
	PID   int // on the host, while Created or Running
	Exit  Exit
}

// Exit tells how a process ended.
type Exit struct {
	Code int // 128+n when signal n ended it
	Time time.Time
}

// ExecSpec is a command to run in a running container.
type ExecSpec struct {
	Command []string
	Env     []string // added to the container's
	TTY     bool
	Columns uint32
	Rows    uint32
	// Stdin may be nil. With TTY, stderr arrives in Stdout.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Stats are counters of a container since its start.
type Stats struct {
	CPU      time.Duration // used
	Memory   uint64        // bytes in use without reclaimable file cache
	Pids     uint64
	IORead   uint64
	IOWrite  uint64
	OOMKills uint64
}
