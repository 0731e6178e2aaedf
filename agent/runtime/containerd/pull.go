package containerd

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/access"
)

const progressInterval = 200 * time.Millisecond

// Pull makes an image present. Without a digest, a present image is used without contacting the
// registry; with one, that content is fetched, also after the tag of the reference has moved.
func (r *Runtime) Pull(ctx context.Context, req runtime.PullRequest, progress func(runtime.Progress)) (runtime.Image, error) {
	ctx = named(ctx)
	if img, ok := r.present(ctx, req); ok {
		r.use(req.Reference) // a container follows
		return img, nil
	}
	progress(runtime.Progress{Phase: "resolving"})
	begun := time.Now()
	resolver, err := newResolver(req)
	if err != nil {
		return runtime.Image{}, fmt.Errorf("resolve image %s: %w", req.Reference, err)
	}
	f := &fetch{runtime: r, req: req, resolver: resolver}
	if f.mirrors, err = mirrorsOf(req); err != nil {
		return runtime.Image{}, fmt.Errorf("mirrors of image %s: %w", req.Reference, err)
	}
	desc, err := f.resolve(ctx)
	if err != nil {
		return runtime.Image{}, err
	}

	whole := ""
	if req.Lazy && r.cfg.Lazy.Command != nil && r.store != "" {
		started := false
		if started, whole, err = r.startLazy(ctx, f, desc); err != nil {
			return runtime.Image{}, fmt.Errorf("pull image %s: %w", req.Reference, err)
		}
		if started {
			r.use(req.Reference)
			return r.Image(ctx, req.Reference)
		}
	}
	img, err := r.pullWhole(ctx, f, desc, progress, whole)
	if err != nil {
		return runtime.Image{}, err
	}
	f.log(begun)
	return r.describe(ctx, img)
}

// pullWhole fetches and unpacks all layers. whole is the reason why the image could not start before.
func (r *Runtime) pullWhole(ctx context.Context, f *fetch, desc ocispec.Descriptor, progress func(runtime.Progress), whole string) (client.Image, error) {
	meter := &meter{store: r.client.ContentStore(), parts: map[string]ocispec.Descriptor{}}
	stop := meter.run(ctx, progress)
	labels := map[string]string{}
	if whole != "" {
		labels[labelWhole] = whole
	}
	img, err := r.client.Pull(ctx, f.req.Reference,
		client.WithResolver(pinned{f.resolver, f.req.Reference, desc}),
		client.WithPullUnpack,
		client.WithPullSnapshotter(snapshotter),
		client.WithPullLabels(labels),
		client.WithImageHandler(images.HandlerFunc(meter.see)),
		client.WithImageHandler(images.HandlerFunc(f.part)),
		client.WithImageHandlerWrapper(withoutURLs),
	)
	stop()
	if err != nil {
		return nil, fmt.Errorf("pull image %s: %w", f.req.Reference, r.noSpace(ctx, meter, err))
	}
	return img, nil
}

// present returns the image if it is complete and unpacked.
func (r *Runtime) present(ctx context.Context, req runtime.PullRequest) (runtime.Image, bool) {
	img, err := r.client.GetImage(ctx, req.Reference)
	if err != nil || (req.Digest != "" && img.Target().Digest.String() != req.Digest) {
		return runtime.Image{}, false
	}
	if ok, err := img.IsUnpacked(ctx, snapshotter); err != nil || !ok {
		if _, started := r.lazyOf(img.Target().Digest.String()); !started {
			return runtime.Image{}, false
		}
	}
	described, err := r.describe(ctx, img)
	return described, err == nil
}

// withoutURLs makes every layer come from the registry: a manifest can name other addresses for its
// layers, such as one inside this machine's network.
func withoutURLs(next images.Handler) images.Handler {
	return images.HandlerFunc(func(ctx context.Context, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		children, err := next.Handle(ctx, desc)
		for i := range children {
			children[i].URLs = nil
		}
		return children, err
	})
}

func newResolver(req runtime.PullRequest) (remotes.Resolver, error) {
	hosts, err := access.Registry{
		PlainHTTP: req.PlainHTTP, Username: req.Username, Password: req.Password, Proxy: req.Proxy, Certificates: req.Certificates,
	}.Hosts()
	if err != nil {
		return nil, err
	}
	return docker.NewResolver(docker.ResolverOptions{Hosts: hosts}), nil
}

// pinned is a resolver that returns the descriptor that was resolved and checked before, so that a
// tag that moves in between has no effect.
type pinned struct {
	remotes.Resolver
	name string
	desc ocispec.Descriptor
}

func (p pinned) Resolve(context.Context, string) (string, ocispec.Descriptor, error) {
	return p.name, p.desc, nil
}

// meter counts the downloaded bytes of an image.
type meter struct {
	store content.Store
	mu    sync.Mutex
	parts map[string]ocispec.Descriptor // by the reference of the download
}

// see is called for every part of the image as it becomes known.
func (m *meter) see(ctx context.Context, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	m.mu.Lock()
	m.parts[remotes.MakeRefKey(ctx, desc)] = desc
	m.mu.Unlock()
	return nil, nil
}

// run reports progress until the returned function is called.
func (m *meter) run(ctx context.Context, progress func(runtime.Progress)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if p, ok := m.measure(ctx); ok {
					progress(p)
				}
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (m *meter) measure(ctx context.Context) (runtime.Progress, bool) {
	m.mu.Lock()
	parts := maps.Clone(m.parts)
	m.mu.Unlock()
	p := runtime.Progress{Phase: "downloading"}
	running, err := m.store.ListStatuses(ctx, "")
	if err != nil {
		return p, false
	}
	arrived := map[string]int64{}
	for _, s := range running {
		arrived[s.Ref] = s.Offset
	}
	for name, part := range parts {
		p.Total += part.Size
		if n, ok := arrived[name]; ok {
			p.Done += n
		} else if _, err := m.store.Info(ctx, part.Digest); err == nil {
			p.Done += part.Size
		}
	}
	if p.Total > 0 && p.Done == p.Total {
		p.Phase = "unpacking"
	}
	return p, true
}
