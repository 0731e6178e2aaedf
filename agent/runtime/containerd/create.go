package containerd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/typeurl/v2"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/runtime"
)

// stepTimeout limits a step that is not cancelled halfway; it usually takes a tenth of a second.
const stepTimeout = 30 * time.Second

// Create prepares snapshot, record and task; on error nothing is left. It asks containerd
// for each of them directly: the calls of the client library read the record, the
// snapshot and the namespace several times, and write a lease for the time between
// snapshot and record.
func (r *Runtime) Create(ctx context.Context, s runtime.Spec) (runtime.Container, error) {
	ctx = named(ctx)
	img, err := r.client.GetImage(ctx, s.Image)
	if errdefs.IsNotFound(err) {
		return nil, fmt.Errorf("image %s is not on this node: %w", s.Image, errdefs.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Image, err)
	}
	parsed, err := r.parse(ctx, img)
	if err != nil {
		return nil, err
	}
	r.use(img.Name())
	c := &container{runtime: r, id: s.ID, labels: map[string]string{
		runtime.LabelAgent: r.cfg.Agent, labelImage: img.Target().Digest.String(),
	}}
	maps.Copy(c.labels, s.Labels)
	started := r.acquireLazy(img.Target().Digest.String())
	defer func() { r.createdLazy(ctx, started) }()
	parent, lower := parsed.parent, ""
	if started != nil {
		parent, lower, c.labels[labelLazy] = "", started.mount.Root(), started.digest
	}
	root, err := r.snapshot(ctx, s.ID, parent)
	if err == nil && lower != "" {
		root, err = over(lower, root)
	}
	if err != nil {
		return nil, fmt.Errorf("create container %s: prepare snapshot: %w", s.ID, err)
	}
	spec, err := c.write(ctx, s, img.Name(), lower)
	if err != nil {
		r.dropSnapshot(ctx, s.ID)
		return nil, fmt.Errorf("create container %s: %w", s.ID, err)
	}
	if err := c.complete(ctx, s, spec, root); err != nil {
		return nil, errors.Join(err, c.undo(ctx))
	}
	return c, nil
}

// gcRoot is the label of snapshots that containerd's garbage collection spares.
const gcRoot = "containerd.io/gc.root"

// snapshot makes a writable layer on top of the image's, and returns the mount of both.
// It needs no lease until the container's record refers to it.
func (r *Runtime) snapshot(ctx context.Context, id, parent string) ([]mount.Mount, error) {
	labels := snapshots.WithLabels(map[string]string{
		runtime.LabelAgent: r.cfg.Agent, gcRoot: time.Now().UTC().Format(time.RFC3339),
	})
	root, err := r.client.SnapshotService(snapshotter).Prepare(ctx, id, parent, labels)
	if errdefs.IsAlreadyExists(err) { // perhaps of an agent that was killed before it wrote the record
		r.dropSnapshot(ctx, id)
		root, err = r.client.SnapshotService(snapshotter).Prepare(ctx, id, parent, labels)
	}
	return root, err
}

// write writes containerd's record of the container. lower is the directory of the image's files if they
// are not in a snapshot.
func (c *container) write(ctx context.Context, s runtime.Spec, image, lower string) (*oci.Spec, error) {
	rec := containers.Container{ID: s.ID, Labels: c.labels, Image: image, Snapshotter: snapshotter, SnapshotKey: s.ID}
	shim := client.WithRuntime(c.runtime.cfg.Shim, &options.Options{
		BinaryName: c.runtime.cfg.Runc, Root: filepath.Join(c.runtime.cfg.Dir, "runc"),
	})
	if err := shim(ctx, c.runtime.client, &rec); err != nil {
		return nil, err
	}
	spec, err := oci.GenerateSpec(ctx, c.runtime.client, &rec, c.runtime.build(s, lower))
	if err != nil {
		return nil, err
	}
	if rec.Spec, err = typeurl.MarshalAny(spec); err != nil {
		return nil, err
	}
	_, err = c.runtime.client.ContainerService().Create(ctx, rec)
	return spec, err
}

// complete makes the task, with a writable layer where the spec wants it.
func (c *container) complete(ctx context.Context, s runtime.Spec, spec *oci.Spec, root []mount.Mount) error {
	if s.Ready != nil {
		if err := s.Ready(); err != nil {
			return err
		}
	}
	if err := own(s.Owned, spec.Process.User); err != nil {
		return fmt.Errorf("create container %s: %w", s.ID, err)
	}
	if err := layer(s, root); err != nil {
		return fmt.Errorf("writable layer of %s: %w", s.ID, err)
	}
	if s.Identity != nil {
		c.runtime.account(ctx, root, spec.Process.User, s.Cwd)
	}
	pid, err := c.newTask(ctx, s, root)
	if err != nil {
		return fmt.Errorf("create task of %s: %w", s.ID, err)
	}
	return c.findFolders(ctx, s, pid)
}

// newTask creates the task and then returns the error of a caller that gave up meanwhile.
// It does not cancel the creation: a shim that gets a create and a shutdown at once may shut
// down first, and stay.
func (c *container) newTask(ctx context.Context, s runtime.Spec, root []mount.Mount) (pid int, err error) {
	output, err := cio.LogURIGenerator("binary", c.runtime.cfg.Runner, map[string]string{"log": s.Log.String()})
	if err != nil {
		return 0, err
	}
	step, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	made, err := c.runtime.client.TaskService().Create(step, &tasks.CreateTaskRequest{
		ContainerID: c.id, Rootfs: mount.ToProto(root), Stdout: output.String(), Stderr: output.String(),
	})
	if err != nil {
		return 0, errgrpc.ToNative(err)
	}
	return int(made.Pid), ctx.Err()
}

// own gives host directories to the container's user.
func own(dirs []string, user specs.User) error {
	for _, dir := range dirs {
		if err := os.Chown(dir, int(user.UID), int(user.GID)); err != nil {
			return err
		}
	}
	return nil
}

// dropSnapshot removes a snapshot without a container.
func (r *Runtime) dropSnapshot(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := r.client.ContainerService().Get(ctx, id); !errdefs.IsNotFound(err) {
		return
	}
	if err := r.client.SnapshotService(snapshotter).Remove(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		r.cfg.Logger.Warn("snapshot left behind", "container", id, "error", err)
	}
}

// dropSnapshots removes those that an agent has left that was killed before it wrote the
// containers' records.
func (r *Runtime) dropSnapshots(ctx context.Context) error {
	ctx = named(ctx)
	var ids []string
	err := r.client.SnapshotService(snapshotter).Walk(ctx, func(_ context.Context, s snapshots.Info) error {
		ids = append(ids, s.Name)
		return nil
	}, fmt.Sprintf("labels.%q==%q", runtime.LabelAgent, r.cfg.Agent))
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	for _, id := range ids {
		r.dropSnapshot(ctx, id)
	}
	return nil
}
