package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/agent/logs"
	"github.com/berthhq/berth/agent/mount"
)

// Builders has the methods of build.Builders that kernels need.
type Builders interface {
	Build(ctx context.Context, project string, r build.Request, report func(build.Event)) (*build.Result, error)
	Fetch(ctx context.Context, project string, r build.Request, report func(build.Event)) (*build.Fetched, error)
}

// Build builds an image inside the limits and the network of a running kernel. The output is a part of the
// kernel's log. A failure of the build's steps is a *build.Error.
func (m *Manager) Build(ctx context.Context, r *agentpb.BuildImageRequest, phase func(string)) (*build.Result, error) {
	if r.Repository == "" || r.Dockerfile == "" {
		return nil, fmt.Errorf("repository or dockerfile is empty: %w", errdefs.ErrInvalidArgument)
	}
	k, leave, err := m.builds(r)
	if err != nil {
		return nil, err
	}
	defer leave()
	var done *build.Result
	err = k.logged(ctx, phase, func(ctx context.Context, report func(build.Event)) (err error) {
		done, err = m.cfg.Builders.Build(ctx, k.rec.request.ProjectId, k.buildRequest(r), report)
		return err
	})
	return done, err
}

// FetchSource fetches a Git repository inside the limits and the network of a running kernel, for a Build of it. A
// failure of the repository is a *build.Error.
func (m *Manager) FetchSource(ctx context.Context, r *agentpb.FetchSourceRequest) (*build.Fetched, error) {
	k, leave, err := m.builds(r)
	if err != nil {
		return nil, err
	}
	defer leave()
	request := build.Request{
		NetNS: m.cfg.Network.Path(k.attachment()), Cgroup: k.CgroupPath(), ResolvConf: mount.Resolv(),
		Source: build.Source{ID: k.ID, Address: r.Address, Ref: r.Ref, Directory: r.Directory, File: r.File, Username: r.Username, Password: r.Password},
	}
	var done *build.Fetched
	err = k.logged(ctx, func(string) {}, func(ctx context.Context, report func(build.Event)) (err error) {
		done, err = m.cfg.Builders.Fetch(ctx, k.rec.request.ProjectId, request, report)
		return err
	})
	return done, err
}

// builds returns the kernel of a request whose caller leads, and keeps other builds and commits of it out until leave
// is called.
func (m *Manager) builds(r interface {
	GetEpoch() int64
	GetKernelId() string
	GetLaunchEpoch() int64
}) (k *Kernel, leave func(), err error) {
	if err := m.Fence(r.GetEpoch()); err != nil {
		return nil, nil, err
	}
	if k, err = m.Get(r.GetKernelId()); err != nil {
		return nil, nil, err
	}
	if present := k.rec.request.LaunchEpoch; r.GetLaunchEpoch() != present {
		return nil, nil, fmt.Errorf("kernel %s: launch %d is not on this node, which has launch %d: %w", k.ID, r.GetLaunchEpoch(), present, errdefs.ErrNotFound)
	}
	if m.cfg.Builders == nil {
		return nil, nil, fmt.Errorf("this agent builds no images: %w", errdefs.ErrNotImplemented)
	}
	if !k.committing.TryLock() {
		return nil, nil, fmt.Errorf("another build or commit of kernel %s runs: %w", k.ID, errdefs.ErrUnavailable)
	}
	return k, k.committing.Unlock, nil
}

// errEnded is the cause of the cancellation of a build whose kernel ends.
var errEnded = fmt.Errorf("the session ended during the build: %w", errdefs.ErrFailedPrecondition)

// logged runs a part of a build until the kernel ends. The output goes to the kernel's log.
func (k *Kernel) logged(ctx context.Context, phase func(string), do func(context.Context, func(build.Event)) error) error {
	if _, err := k.Running(); err != nil {
		return err
	}
	out, err := k.output(ctx)
	if err != nil {
		return fmt.Errorf("open the log of kernel %s: %w", k.ID, err)
	}
	defer out.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-k.stopping:
			cancel(errEnded)
		case <-k.done:
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	err = do(ctx, func(e build.Event) {
		if e.Phase != "" {
			phase(e.Phase)
		}
		_, _ = io.WriteString(out, e.Log) // without a log writer, output is lost instead of blocking the build
	})
	var failed *build.Error
	if errors.As(err, &failed) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_, _ = fmt.Fprintf(out, "The build failed: %v\n", err)
	}
	return err
}

func (k *Kernel) buildRequest(r *agentpb.BuildImageRequest) build.Request {
	way := build.Way{PlainHTTP: r.PlainHttp, Proxy: r.Proxy, Certificates: r.Certificates}
	out := build.Request{
		NetNS: k.m.cfg.Network.Path(k.attachment()), Cgroup: k.CgroupPath(), ResolvConf: mount.Resolv(),
		Dockerfile: r.Dockerfile, Context: r.Context, Target: r.Target, Args: r.Args, Secrets: r.Secrets,
		NoCache: r.NoCache, Epoch: r.SourceDateEpoch, Images: r.Images, MaxBytes: r.MaxBytes, Indexed: r.Indexed,
		CABundle: k.m.cfg.CABundle,
		Output:   build.Repository{Way: way, Name: r.Repository, Username: r.Username, Password: r.Password, MountFrom: r.MountFrom},
		Files:    build.Files{Repository: build.Repository{Way: way, Name: r.FilesRepository, Username: r.CacheReader, Password: r.CacheSecret}, Parts: r.Files},
	}
	if r.Fetched {
		out.Source.ID = k.ID
	}
	for _, reg := range r.Registries {
		out.Registries = append(out.Registries, build.Registry{
			Way: build.Way{PlainHTTP: reg.PlainHttp, Proxy: reg.Proxy, Certificates: reg.Certificates}, Host: reg.Host, Username: reg.Username, Password: reg.Password,
		})
	}
	if r.CacheRepository != "" {
		out.Cache = build.Cache{
			Repository: build.Repository{Way: way, Name: r.CacheRepository, Username: r.Username, Password: r.CachePassword, MountFrom: r.MountFrom},
			Export:     r.CacheExport, Import: r.CacheImport, Reader: r.CacheReader, Secret: r.CacheSecret,
		}
	}
	return out
}

// writeWait limits a write into the log while its writer is restarted.
const writeWait = 5 * time.Second

// output opens the log for output of the agent: the standard output of the container's process 1, or the log's
// files under a runtime without pipes.
func (k *Kernel) output(ctx context.Context) (io.WriteCloser, error) {
	c, err := k.Running()
	if err != nil {
		return nil, err
	}
	state, err := c.State(ctx)
	if err != nil {
		return nil, err
	}
	if state.PID > 0 {
		pipe, err := logs.Output(k.LogDir(), state.PID)
		if !errors.Is(err, fs.ErrNotExist) {
			return deadlined{pipe}, err
		}
	}
	spec := k.logSpec()
	return logs.NewWriter(spec.Dir, spec.FileBytes, spec.Files)
}

// deadlined is a pipe whose writes do not block forever.
type deadlined struct {
	pipe interface {
		io.WriteCloser
		SetWriteDeadline(time.Time) error
	}
}

func (d deadlined) Write(p []byte) (int, error) {
	_ = d.pipe.SetWriteDeadline(time.Now().Add(writeWait))
	return d.pipe.Write(p)
}

func (d deadlined) Close() error { return d.pipe.Close() }
