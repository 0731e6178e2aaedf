package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/containerd/containerd/v2/core/diff/apply"
	ctdmetadata "github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/containerd/v2/plugins/diff/walking"
	"github.com/containerd/containerd/v2/plugins/snapshots/overlay"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/moby/buildkit/cache/metadata"
	"github.com/moby/buildkit/executor/oci"
	"github.com/moby/buildkit/executor/resources"
	"github.com/moby/buildkit/executor/runcexecutor"
	"github.com/moby/buildkit/snapshot/containerd"
	"github.com/moby/buildkit/solver/pb"
	"github.com/moby/buildkit/util/leaseutil"
	"github.com/moby/buildkit/util/network"
	"github.com/moby/buildkit/worker/base"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	bolt "go.etcd.io/bbolt"

	"github.com/berthhq/berth/agent/build"
)

const snapshotter = "overlayfs"

// stepOOMScore makes the kernel end a step before the builder when the sandbox has no memory left.
const stepOOMScore = 500

// lock makes this process the only builder of a cache directory until it ends.
func lock(ctx context.Context, root string, waits func()) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(root, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return err // the file stays open as long as the process lives
	}
	waits()
	locked := make(chan error, 1)
	go func() { locked <- syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }()
	select {
	case err := <-locked:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newWorker returns a worker of BuildKit with its own content and snapshots below the cache directory.
func newWorker(ctx context.Context, r build.Request, hosts registries) (*base.Worker, error) {
	root := filepath.Join(r.Root, "worker")
	for _, dir := range []string{root, filepath.Join(root, "executor")} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return nil, err
		}
	}
	snap, err := overlay.NewSnapshotter(filepath.Join(root, "snapshots"))
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	blobs, err := local.NewStore(filepath.Join(root, "content"))
	if err != nil {
		return nil, fmt.Errorf("open content: %w", err)
	}
	db, err := bolt.Open(filepath.Join(root, "content.db"), 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType, NoFreelistSync: true})
	if err != nil {
		return nil, fmt.Errorf("open content: %w", err)
	}
	meta := ctdmetadata.NewDB(db, blobs, map[string]snapshots.Snapshotter{snapshotter: snap})
	if err := meta.Init(ctx); err != nil {
		return nil, fmt.Errorf("open content: %w", err)
	}
	store := containerd.NewContentStore(meta.ContentStore(), namespace)
	records, err := metadata.NewStore(filepath.Join(root, "metadata.db"))
	if err != nil {
		return nil, fmt.Errorf("open records of the cache: %w", err)
	}
	monitor, err := resources.NewMonitor()
	if err != nil {
		return nil, err
	}
	networks := map[pb.NetMode]network.Provider{pb.NetMode_UNSET: &sandboxes{request: r}, pb.NetMode_NONE: &sandboxes{request: r, alone: true}}
	score := stepOOMScore
	executor, err := runcexecutor.New(runcexecutor.Opt{
		Root: filepath.Join(root, "executor"), CommandCandidates: []string{r.Runc}, ProcessMode: oci.ProcessSandbox,
		DefaultCgroupParent: r.Cgroup, OOMScoreAdj: &score, ResourceMonitor: monitor,
	}, networks)
	if err != nil {
		return nil, err
	}
	return base.NewWorker(ctx, base.WorkerOpt{
		ID: "builder", Root: root, Labels: map[string]string{}, Platforms: []ocispec.Platform{platforms.Normalize(platforms.DefaultSpec())},
		NetworkProviders: networks, Executor: executor, RegistryHosts: hosts.of,
		Snapshotter: containerd.NewSnapshotter(snapshotter, meta.Snapshotter(snapshotter), namespace, nil), ContentStore: store,
		Applier: apply.NewFileSystemApplier(store), Differ: walking.NewWalkingDiff(store),
		LeaseManager: leaseutil.WithNamespace(ctdmetadata.NewLeaseManager(meta), namespace), GarbageCollect: meta.GarbageCollect,
		MetadataStore: records, ContentMetadata: db, MountPoolRoot: filepath.Join(root, "mounts"), ResourceMonitor: monitor,
	})
}

const namespace = "build"

// emptied removes a cache directory's content if it cannot be opened, as after a crash of the machine:
// everything in it can be made again.
func emptied(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lock" || e.Name() == "lost+found" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(root, e.Name())); err != nil {
			return fmt.Errorf("empty the cache: %w: %w", err, errdefs.ErrFailedPrecondition)
		}
	}
	return nil
}
