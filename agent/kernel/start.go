package kernel

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/trust"
	"github.com/berthhq/berth/internal/foldergroup"
	"github.com/berthhq/berth/internal/resource"
)

// start creates and starts the container. Its disk is created while devices, namespace and the
// runtime's records are prepared. The network is connected while the container is being created,
// because the container needs the namespace but not the connection.
func (k *Kernel) start(ctx context.Context) error {
	k.mu.Lock()
	k.rec.state.Steps = nil // steps of an attempt before the agent restarted
	k.mu.Unlock()
	image := k.image
	if image.Reference == "" {
		var err error
		if image, err = k.m.cfg.Runtime.Image(ctx, k.rec.request.Image); err != nil {
			return err
		}
	}
	disk := k.beside("disk", func() error { return k.makeDisk(ctx) })
	defer disk() // also on an error, no step may still be running on return
	prepared, err := k.prepareDevices(ctx)
	if err != nil {
		return err
	}
	att := k.attachment()
	netns, err := k.m.cfg.Network.Create(att)
	if err != nil {
		return err
	}
	connected := k.beside("network", func() error { return k.m.cfg.Network.Connect(ctx, att) })
	created := k.create(ctx, image, netns, prepared, disk)
	if err := errors.Join(created, connected()); err != nil {
		return err
	}
	if err := k.step("start", func() error { return k.container.Start(ctx) }); err != nil {
		return err
	}
	k.running()
	return nil
}

// beside runs a step concurrently. wait returns its error once it has ended.
func (k *Kernel) beside(name string, f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- k.step(name, f) }()
	return sync.OnceValue(func() error { return <-done })
}

// slowPrepare is the delay after which the state names the plugin that a start waits for. Most
// plugins respond within a second; those that start a server for the device take a few.
const slowPrepare = 5 * time.Second

const prepareStep = "prepare-devices"

// waits sets the plugins that a start waits for in the state, unless the start has continued.
func (k *Kernel) waits(plugins []string) {
	k.publish(func(s *agentpb.KernelState) {
		prepared := slices.ContainsFunc(s.Steps, func(s *agentpb.Step) bool { return s.Name == prepareStep })
		if s.Phase == agentpb.KernelState_CREATING && !prepared {
			s.Message = fmt.Sprintf("waits for plugin %s to prepare its devices", strings.Join(plugins, ", "))
		}
	})
}

func (k *Kernel) prepareDevices(ctx context.Context) (prepared device.Prepared, err error) {
	r := k.rec.request
	slow := time.AfterFunc(slowPrepare, func() { k.waits(device.PluginsOf(r.Allocations)) })
	defer slow.Stop()
	err = k.step(prepareStep, func() (err error) {
		prepared, err = k.m.cfg.Devices.Prepare(ctx, device.Request{
			ID: k.AllocationID(), Kernel: r.KernelId, Session: r.SessionId, TrustDomain: r.ProjectId, Allocations: r.Allocations,
		})
		return err
	})
	if err != nil || len(prepared.States) == 0 {
		return prepared, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rec.devices = prepared.States
	return prepared, k.save()
}

// create resolves the mounts and creates the container. The files of the mounts are written once
// the kernel's disk exists.
func (k *Kernel) create(ctx context.Context, image runtime.Image, netns string, prepared device.Prepared, disk func() error) error {
	spec, err := k.spec(image, netns)
	if err != nil {
		return err
	}
	spec.Edit = func(s *specs.Spec) error { return k.m.cfg.Devices.Apply(s, prepared) }
	bound := &mount.Bound{}
	defer func() {
		if err := bound.Close(); err != nil {
			k.m.cfg.Logger.Warn("folders still mounted on the host", "kernel", k.ID, "error", err)
		}
	}()
	files := k.files()
	files.Resources = prepared.Lines
	err = k.step("mounts", func() (err error) {
		bound, spec.Mounts, err = k.mounts(ctx, files)
		for _, f := range k.folders() {
			spec.Folders = append(spec.Folders, path.Clean(f.Target))
		}
		return err
	})
	if err != nil {
		return err
	}
	spec.Ready = func() error {
		if err := disk(); err != nil {
			return err
		}
		if err := files.Write(); err != nil {
			return err
		}
		return k.m.shareNames(k.rec.request.SessionId)
	}
	return k.step("create", func() error {
		c, err := k.m.cfg.Runtime.Create(ctx, spec)
		if err != nil {
			return err
		}
		k.hold(c)
		return nil
	})
}

// mounts lists everything that the container sees besides its image, and opens its folders.
func (k *Kernel) mounts(ctx context.Context, files mount.Files) (*mount.Bound, []specs.Mount, error) {
	if err := mount.Unmount(files.Folders()); err != nil { // left by an earlier attempt
		return &mount.Bound{}, nil, err
	}
	bound, err := k.m.cfg.Volumes.Open(ctx, k.folders())
	if err != nil {
		return &mount.Bound{}, nil, err
	}
	if r := k.rec.request; r.HasUser {
		if err := bound.Give(r.Uid); err != nil {
			return bound, nil, err
		}
	}
	list, err := bound.Mount(files.Folders())
	return bound, append(files.Mounts(), list...), err
}

func (k *Kernel) files() mount.Files {
	return mount.Files{
		Dir: k.m.dir(k.ID), Runner: k.m.cfg.Runner, Hostname: k.hostname(),
		Address: k.rec.network.Address, Peers: peers(k.rec.request), Bootstrap: k.rec.request.BootstrapScript,
		Cluster: cluster(k.rec.request), CABundle: k.m.cfg.CABundle,
	}
}

// spec combines the request and the image into a container spec. The image's entry point precedes
// the command, as in other container engines; the image's labels are ignored.
func (k *Kernel) spec(image runtime.Image, netns string) (runtime.Spec, error) {
	r := k.rec.request
	limits, err := k.resources()
	if err != nil {
		return runtime.Spec{}, err
	}
	args := []string{runner.Path, "init"}
	if len(r.Command) > 0 {
		args = append(append(args, image.Entrypoint...), r.Command...)
	}
	s := runtime.Spec{
		ID: containerID(r), Image: r.Image, Hostname: k.hostname(),
		Labels: map[string]string{
			runtime.LabelSession: r.SessionId, runtime.LabelKernel: r.KernelId,
			runtime.LabelLaunchEpoch: fmt.Sprint(r.LaunchEpoch),
		},
		Args: args, Env: k.environment(image), Cwd: mount.Work, User: image.User,
		Groups: []uint32{foldergroup.ID}, Owned: k.files().Owned(), Layer: k.files().Disk(), ShmBytes: r.ShmBytes, Resources: limits,
		NetNS: netns, CgroupPath: k.CgroupPath(),
		Log: k.logSpec(),
	}
	if r.HasUser {
		s.Identity = &runtime.Identity{UID: r.Uid, GID: r.Gid, Groups: r.Gids}
	}
	return s, nil
}

// environment returns the variables of the image, then those of the request, then those that
// identify the kernel. None of them is treated as secret.
func (k *Kernel) environment(image runtime.Image) []string {
	r := k.rec.request
	env := newEnv(image.Env)
	env.setDefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	env.set("HOME", mount.Work)
	for name, value := range r.Environment {
		env.set(name, value)
	}
	if k.m.cfg.CABundle != "" {
		for _, name := range trust.Variables() {
			env.setDefault(name, trust.Path)
		}
	}
	env.set("BERTH_SESSION_ID", r.SessionId)
	env.set("BERTH_KERNEL_ID", r.KernelId)
	env.set("BERTH_SESSION_NAME", r.SessionName)
	return env.list()
}

func (k *Kernel) resources() (runtime.Resources, error) {
	r := k.rec.request
	out := runtime.Resources{Pids: k.m.cfg.PidsLimit}
	for _, a := range r.Allocations {
		amount, err := resource.Parse(a.Slot, a.Amount)
		if err != nil {
			return out, fmt.Errorf("allocation: %w: %w", err, errdefs.ErrInvalidArgument)
		}
		switch a.Slot {
		case resource.CPU:
			out.MilliCPU += amount
		case resource.Mem:
			out.Memory += amount
		}
	}
	out.CPUs, out.Mems = k.m.cfg.Devices.Pin(r.Allocations)
	return out, nil
}
