package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/containerd/stargz-snapshotter/estargz"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/agent/lazy"
	"github.com/berthhq/berth/agent/runtime"
)

// Lazy configures images that start before their layers are complete.
type Lazy struct {
	Command []string      // that runs lazy.Main; nil: images are pulled as a whole
	Minimum int64         // bytes of layers; smaller images are pulled as a whole. 0: lazyMinimum
	Timeout time.Duration // of a read; 0: lazy.DefaultTimeout
	// Changed is called when the state of an image has changed.
	Changed func()
}

const (
	// labelLazy is the label of a container whose files come from a process of package lazy. Its value
	// is the digest of the image.
	labelLazy = "berth.lazy"
	// labelWhole is the label of an image that could not start before it was complete, with the reason.
	labelWhole = "berth.whole"

	lazyMinimum = 16 << 20
	// The layers are fetched when no read has waited for the registry for lazyQuiet, so that they do not
	// take the bandwidth of a program that starts, and after lazyLatest in any case.
	lazyQuiet  = 2 * time.Second
	lazyLatest = 30 * time.Second
	lazyPoll   = time.Second
	lazyRetry  = 5 * time.Second
)

// lazies are the images whose files come from processes of package lazy, by the digest of the image.
type lazies struct {
	ctx  context.Context // of completing them
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	m        map[string]*lazyImage
	starting map[string]bool
}

// lazyImage is one of them.
type lazyImage struct {
	digest, reference string
	mount             *lazy.Mount
	cancel            context.CancelFunc // ends completing
	done              chan struct{}      // closed when completing has ended
	ended             bool               // the process is expected to end

	complete bool
	creating int // containers that are being created
	status   lazy.Status
}

func newLazies() *lazies {
	ctx, stop := context.WithCancel(named(context.Background()))
	return &lazies{ctx: ctx, stop: stop, m: map[string]*lazyImage{}, starting: map[string]bool{}}
}

func (r *Runtime) lazyDir(digest string) string {
	return filepath.Join(r.cfg.Dir, "lazy", strings.TrimPrefix(digest, "sha256:"))
}

// startLazy starts an image before its layers are present. If it does not, whole is the reason.
func (r *Runtime) startLazy(ctx context.Context, f *fetch, desc ocispec.Descriptor) (started bool, whole string, err error) {
	ctx, release, err := r.client.WithLease(ctx)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = release(context.WithoutCancel(ctx)) }()
	layers, err := r.documents(ctx, f, desc)
	if err != nil {
		return false, "", err
	}
	digest := desc.Digest.String()
	serving, complete := r.beginLazy(digest)
	if complete {
		return false, "", nil // the rest is there
	}
	if serving { // under another name
		return true, "", r.recordLazy(ctx, f.req.Reference, desc)
	}
	defer r.begunLazy(digest)
	request, whole := lazyRequest(layers, cmp.Or(r.cfg.Lazy.Minimum, lazyMinimum))
	if whole != "" {
		return false, whole, nil
	}
	request.Dir, request.Store, request.Image, request.Timeout = r.lazyDir(digest), r.store, digest, r.cfg.Lazy.Timeout
	request.Reference, request.PlainHTTP, request.Username, request.Password = f.req.Reference, f.req.PlainHTTP, f.req.Username, f.req.Password
	request.Proxy, request.Certificates = f.req.Proxy, f.req.Certificates
	if err := lazy.Remove(request.Dir); err != nil { // of an agent that was killed while it started the process
		return false, "", err
	}
	m, err := lazy.Start(ctx, r.cfg.Lazy.Command, request)
	if ctx.Err() != nil {
		return false, "", ctx.Err()
	}
	if err != nil {
		return false, fmt.Sprintf("its files cannot be read before it is complete: %v", err), nil
	}
	if err := r.recordLazy(ctx, f.req.Reference, desc); err != nil {
		return false, "", errors.Join(err, lazy.Remove(request.Dir))
	}
	l := &lazyImage{digest: digest, reference: f.req.Reference, mount: m}
	for _, one := range request.Layers {
		l.status.Total += one.Size
	}
	r.serveLazy(l, f.req)
	return true, "", nil
}

// beginLazy reserves an image, and reports whether it is served or complete.
func (r *Runtime) beginLazy(digest string) (serving, complete bool) {
	r.lazies.mu.Lock()
	defer r.lazies.mu.Unlock()
	if l := r.lazies.m[digest]; l != nil {
		return true, l.complete
	}
	if r.lazies.starting[digest] { // under another name: this one is pulled as a whole
		return false, true
	}
	r.lazies.starting[digest] = true
	return false, false
}

func (r *Runtime) begunLazy(digest string) {
	r.lazies.mu.Lock()
	defer r.lazies.mu.Unlock()
	delete(r.lazies.starting, digest)
}

// recordLazy makes containerd know an image whose layers are not present.
func (r *Runtime) recordLazy(ctx context.Context, reference string, desc ocispec.Descriptor) error {
	record := images.Image{Name: reference, Target: desc, Labels: map[string]string{labelLazy: r.cfg.Agent}}
	_, err := r.client.ImageService().Create(ctx, record)
	if errdefs.IsAlreadyExists(err) {
		_, err = r.client.ImageService().Update(ctx, record)
	}
	if err != nil {
		return fmt.Errorf("record the image: %w", err)
	}
	return nil
}

// documents fetches the index, the manifest and the configuration, and returns the layers.
func (r *Runtime) documents(ctx context.Context, f *fetch, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	store := r.client.ContentStore()
	children := images.SetChildrenMappedLabels(store, images.ChildrenHandler(store), nil)
	children = images.LimitManifests(images.FilterPlatforms(children, platforms.Default()), platforms.Default(), 1)
	err := images.Walk(ctx, images.Handlers(images.HandlerFunc(f.part), images.HandlerFunc(
		func(ctx context.Context, desc ocispec.Descriptor) (kept []ocispec.Descriptor, err error) {
			list, err := children(ctx, desc)
			for _, one := range list {
				if !images.IsLayerType(one.MediaType) {
					kept = append(kept, one)
				}
			}
			return kept, err
		})), desc)
	if err != nil {
		return nil, err
	}
	m, err := images.Manifest(ctx, store, desc, platforms.Default())
	return m.Layers, err
}

// lazyRequest returns the layers for the process, or why the image cannot start before it is complete.
func lazyRequest(layers []ocispec.Descriptor, minimum int64) (r lazy.Request, whole string) {
	var total int64
	for i, l := range layers {
		one := lazy.Layer{Digest: l.Digest.String(), Size: l.Size, TOC: l.Annotations[estargz.TOCJSONDigestAnnotation]}
		switch {
		case one.TOC == "":
			return r, fmt.Sprintf("layer %d of %d is not in a format with an index of its files (eStargz or zstd:chunked)", i+1, len(layers))
		case strings.HasSuffix(l.MediaType, "zstd"):
			one.Zstd = true
		case !strings.HasSuffix(l.MediaType, "gzip"):
			return r, fmt.Sprintf("layer %d of %d has the media type %.100q", i+1, len(layers), l.MediaType)
		}
		total += l.Size
		r.Layers = append(r.Layers, one)
	}
	if total < minimum {
		return r, fmt.Sprintf("it has only %d bytes", total)
	}
	return r, ""
}

// serveLazy keeps an image: it watches the process, and fetches the layers.
func (r *Runtime) serveLazy(l *lazyImage, req runtime.PullRequest) {
	ctx, cancel := context.WithCancel(r.lazies.ctx)
	l.cancel, l.done = cancel, make(chan struct{})
	r.lazies.mu.Lock()
	if l.status.Total == 0 {
		l.status.Total = 1 // until the process has said more
	}
	r.lazies.m[l.digest] = l
	complete := l.complete
	r.lazies.mu.Unlock()
	r.lazies.wg.Go(func() {
		defer close(l.done)
		if !complete {
			r.completeLazy(ctx, l, req)
		}
	})
	r.lazies.wg.Go(func() { r.watchLazy(l) })
}

// completeLazy fetches and unpacks the layers, until that has succeeded.
func (r *Runtime) completeLazy(ctx context.Context, l *lazyImage, req runtime.PullRequest) {
	r.awaitQuiet(ctx, l)
	for wait := lazyRetry; ctx.Err() == nil; wait = min(2*wait, time.Minute) {
		err := r.wholeOf(ctx, l, req)
		if err == nil {
			r.lazies.mu.Lock()
			l.complete = true
			r.lazies.mu.Unlock()
			r.releaseLazy(ctx, l.digest)
			r.lazyChanged()
			return
		}
		if ctx.Err() != nil {
			return
		}
		r.cfg.Logger.Warn("image not complete yet; retrying", "image", l.reference, "digest", l.digest, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// awaitQuiet waits until programs have read what they need to start.
func (r *Runtime) awaitQuiet(ctx context.Context, l *lazyImage) {
	latest := time.After(lazyLatest)
	for {
		select {
		case <-ctx.Done():
			return
		case <-latest:
			return
		case <-time.After(lazyPoll):
		}
		if s, err := l.mount.Status(ctx); err == nil && s.Waiting == 0 && s.Idle > lazyQuiet {
			return
		}
	}
}

// wholeOf pulls the image of a digest. If its name now means another image, it gets the name of the digest.
func (r *Runtime) wholeOf(ctx context.Context, l *lazyImage, req runtime.PullRequest) error {
	if now, err := r.client.GetImage(ctx, l.reference); err != nil || now.Target().Digest.String() != l.digest {
		name, _, _ := strings.Cut(l.reference, "@")
		req.Reference = name + "@" + l.digest
	}
	req.Digest = l.digest
	resolver, err := newResolver(req)
	if err != nil {
		return err
	}
	f := &fetch{runtime: r, req: req, resolver: resolver}
	desc, err := f.resolve(ctx)
	if err != nil {
		return err
	}
	_, err = r.pullWhole(ctx, f, desc, func(runtime.Progress) {}, "")
	r.mu.Lock()
	delete(r.images, l.digest) // its list of parts was not complete
	r.mu.Unlock()
	return err
}

// watchLazy measures the process until it ends.
func (r *Runtime) watchLazy(l *lazyImage) {
	tick := time.NewTicker(lazyPoll)
	defer tick.Stop()
	for {
		select {
		case <-r.lazies.ctx.Done():
			return
		case <-l.mount.Gone():
			r.lazyEnded(l)
			return
		case <-tick.C:
		}
		if s, err := l.mount.Status(r.lazies.ctx); err == nil {
			r.measureLazy(l, s)
		}
	}
}

func (r *Runtime) measureLazy(l *lazyImage, s lazy.Status) {
	r.lazies.mu.Lock()
	old := l.status
	l.status = s
	r.lazies.mu.Unlock()
	if r.cfg.Fetched != nil {
		r.cfg.Fetched.Lazily(s.Fetched-old.Fetched, s.Refused-old.Refused, s.Waiting-old.Waiting)
	}
	if s.Failing != old.Failing && (s.Failing == "" || old.Failing == "") || percent(s) != percent(old) {
		r.lazyChanged()
	}
	if s.Failing != "" && old.Failing == "" {
		r.cfg.Logger.Warn("files of an image cannot be read", "image", l.reference, "reason", s.Failing)
	}
}

func percent(s lazy.Status) int64 { return 100 * s.Local / max(s.Total, 1) }

func (r *Runtime) lazyChanged() {
	if r.cfg.Lazy.Changed != nil {
		r.cfg.Lazy.Changed()
	}
}
