// Package runtime is the interface between the agent and container runtimes. containerd is the real
// one, and fake simulates every failure; both pass the suite in runtimetest. A container is
// identified by its id and recovered by its labels, so that an agent that was killed recovers all
// of its containers.
//
// Errors have an errdefs class: NotFound for missing images and containers, AlreadyExists,
// InvalidArgument, FailedPrecondition, and Unavailable while the runtime is not running.
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

// Labels of every container of an agent.
const (
	LabelAgent       = "berth.agent"
	LabelSession     = "berth.session"
	LabelKernel      = "berth.kernel"
	LabelLaunchEpoch = "berth.launch-epoch"
)

// Runtime runs containers of one agent.
type Runtime interface {
	// Pull makes an image present and reports its progress.
	Pull(ctx context.Context, r PullRequest, progress func(Progress)) (Image, error)
	// Image returns a present image, and NotFound if it is not present.
	Image(ctx context.Context, reference string) (Image, error)
	// Images returns the present images.
	Images(ctx context.Context) ([]Image, error)
	// Create creates a container without starting its process. After an error, nothing of it is left.
	Create(ctx context.Context, s Spec) (Container, error)
	// Containers returns all containers with the agent's label, in any state.
	Containers(ctx context.Context) ([]Container, error)
	// Answers returns an error if the runtime does not respond.
	Answers(ctx context.Context) error
	Close() error
}

// Container is one container. It survives restarts of the agent and the runtime.
type Container interface {
	ID() string
	Labels() map[string]string
	Start(ctx context.Context) error
	State(ctx context.Context) (State, error)
	// Wait waits for the end of the container's process. It returns NotFound if the process has
	// ended and its exit code is lost. Any other error means that it is not known yet whether the
	// process has ended.
	Wait(ctx context.Context) (Exit, error)
	// Kill sends a signal to the container's first process.
	Kill(ctx context.Context, signal syscall.Signal) error
	Exec(ctx context.Context, e ExecSpec) (Process, error)
	Stats(ctx context.Context) (Stats, error)
	// Remount changes mounted folders of the container, like mount.Apply. It does nothing if the
	// container has ended, and returns FailedPrecondition if the places of its mounts are not
	// known. It must not be called concurrently.
	Remount(ctx context.Context, changes []mount.Change) error
	// Commit sends the image of the container with a layer of the files that it has changed to a
	// registry. It pauses the container while it copies what changes at the time, and leaves out
	// mounts and everything that package commit excludes. A container that has not changed anything
	// sends its image as it is. After an error, nothing of it is left on this node.
	Commit(ctx context.Context, s CommitSpec, progress func(Progress)) (Committed, error)
	// Remove kills all processes and deletes the container. Removing a missing container is not an
	// error.
	Remove(ctx context.Context) error
}

// Process is an additional command in a running container.
type Process interface {
	// Wait returns the exit code after all output has been written.
	Wait(ctx context.Context) (int, error)
	Kill(ctx context.Context, signal syscall.Signal) error
	Resize(ctx context.Context, columns, rows uint32) error
}

// PullRequest names an image in its registry.
type PullRequest struct {
	Reference string
	Digest    string // of the content to fetch, "" = what Reference stands for
	PlainHTTP bool
	Username  string
	Password  string
	Peers     Peers // other agents, nil = everything comes from the registry; needs Digest
	// Mirrors are asked for the content of Digest before the registry, in this order.
	Mirrors []Mirror
	// Proxy is the URL of the proxy to the registry, "" = that of the environment. Certificates are
	// trusted in addition to those of the machine, in PEM.
	Proxy, Certificates string
	// Lazy makes the files of the image available before its layers are complete, if the host and the format
	// of the image allow it. The layers are then fetched in the background.
	Lazy bool
}

// Mirror is a server that has copies of the images of a registry. It gets its own credentials, or none.
type Mirror struct {
	Host      string // and port
	PlainHTTP bool
	Username  string
	Password  string
}

// Progress is the progress of a pull or a commit. Total grows while the image's parts become known.
type Progress struct {
	Phase string // resolving, downloading, unpacking; copying, compressing, pushing
	Done  int64
	Total int64
}

// CommitSpec names the repository that Commit sends an image to.
type CommitSpec struct {
	Repository string // host/path, without a tag
	PlainHTTP  bool
	Username   string
	Password   string
	MountFrom  string // a repository of the registry that has the layers of the container's image, "" = none
	Layer      string // as in Spec
	MaxBytes   int64  // of the layer; 0: no limit
	Indexed    bool   // the layer gets an index of its files
}

// Committed is the image that Commit has sent.
type Committed struct {
	Digest     string // of its manifest
	Size       int64  // of all layers and the configuration
	LayerBytes int64  // of the new layer; 0 = the container had not changed anything
	Sent       int64  // bytes that the registry did not have
	Paused     time.Duration
}

// Image is a present image. Its configuration is data for the caller, who composes a Spec from it;
// the runtime itself does not use it.
type Image struct {
	Reference    string
	Digest       string
	Architecture string
	Env          []string
	Entrypoint   []string
	WorkingDir   string
	User         string
	// Parts are all parts of the image that are present: index, manifest, configuration, layers. Only Images
	// returns them, and Used.
	Parts []ImagePart
	Used  time.Time // when a container was last created from the image, or when it was pulled
	// Lazy is the state of an image whose layers are not complete yet, nil for others. Whole is why an image
	// was pulled as a whole although it should have started before. Only Images returns them.
	Lazy  *LazyState
	Whole string
}

// LazyState is the state of an image whose files are available before its layers are complete.
type LazyState struct {
	Local, Total int64  // bytes of the layers on this host, and of all
	Failing      string // why files cannot be read now, "" = they can
}

// RootChecker is a container whose image's files can become unavailable.
type RootChecker interface {
	// Lazy reports whether the container was created before its image was complete.
	Lazy() bool
	// RootProblem returns why files of the image cannot be read now, "" = they can, and reports whether they
	// are gone for good.
	RootProblem(ctx context.Context) (problem string, lost bool)
}

// ImagePart is a part of an image.
type ImagePart struct {
	Digest string
	Size   int64
}

// Spec describes a container.
type Spec struct {
	ID       string
	Image    string
	Labels   map[string]string
	Hostname string
	Args     []string
	Env      []string
	Cwd      string
	User     string // as in the image: name, uid, uid:gid, "" = root
	// Identity replaces User; the image's files are not read then.
	Identity *Identity
	Groups   []uint32 // additional groups of a user other than root
	Mounts   []specs.Mount
	Folders  []string // destinations of Mounts that Remount can change
	// Owned are directories and files on the host whose owner becomes User before the start.
	Owned []string
	// Layer is an empty directory on the host for the container's writable layer; "" lets the
	// runtime choose one.
	Layer     string
	ShmBytes  int64
	Resources Resources
	// NetNS is the path of a network namespace to join; "" = a new, empty one.
	NetNS      string
	CgroupPath string // absolute, below the cgroup root
	Log        runner.LogSpec
	// Edit makes the final changes of the OCI spec, for devices.
	Edit func(*specs.Spec) error
	// Ready returns once the directories and files on the host that the spec names exist. Create calls
	// it as late as possible, because they can be created meanwhile. nil = they exist already.
	Ready func() error
}

// Identity is a user by numeric ids.
type Identity struct {
	UID, GID uint32
	Groups   []uint32 // supplementary
}

// Resources are the limits of a container. Zero = unlimited.
type Resources struct {
	MilliCPU int64
	Memory   int64 // bytes, including swap
	Pids     int64
	CPUs     string // processors that the container can use, such as 0-3,8
	Mems     string // NUMA nodes that its memory is allocated from
}

// Phase is the phase of a container's process.
type Phase int

// The phases of a container.
const (
	Created Phase = iota
	Running
	Exited
	Gone // only remains exist; the exit code is lost
)

// State is the state of a container.
type State struct {
	Phase Phase
	PID   int // on the host, while Created or Running
	Exit  Exit
}

// Exit describes the end of a process.
type Exit struct {
	Code int // 128+n if signal n ended it
	Time time.Time
}

// ExecSpec is a command to run in a running container.
type ExecSpec struct {
	Command []string
	Env     []string // added to the container's
	TTY     bool
	Columns uint32
	Rows    uint32
	// Stdin can be nil. With TTY, stderr is part of Stdout.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Stats are counters of a container since its start.
type Stats struct {
	CPU      time.Duration // used
	Memory   uint64        // bytes in use without reclaimable page cache
	Pids     uint64
	IORead   uint64
	IOWrite  uint64
	OOMKills uint64
}
