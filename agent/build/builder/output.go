package builder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/agent/runtime/push"
)

// output is the content store that BuildKit exports an image to. It sends what it gets to a repository,
// and keeps nothing.
type output struct {
	nothing
	pusher *push.Pusher
	base   map[digest.Digest]bool // layers of the base images
	max    int64

	mu    sync.Mutex
	done  build.Result
	added map[digest.Digest]bool
}

func newOutput(ctx context.Context, r build.Request) (*output, error) {
	to, err := target(r.Output)
	if err != nil {
		return nil, err
	}
	pusher, err := push.NewPusher(ctx, to)
	if err != nil {
		return nil, err
	}
	o := &output{pusher: pusher, base: map[digest.Digest]bool{}, added: map[digest.Digest]bool{}, max: r.MaxBytes}
	for _, ref := range r.Images {
		if err := o.readBase(ctx, r, ref); err != nil {
			return nil, fmt.Errorf("read the manifest of base image %s: %w", ref, err)
		}
	}
	return o, nil
}

// readBase notes the layers of a base image.
func (o *output) readBase(ctx context.Context, r build.Request, ref string) error {
	host, _, _ := strings.Cut(ref, "/")
	from := registries(r.Registries).named(host)
	hosts, err := hostsOf(from.Way, from.Username, from.Password)
	if err != nil {
		return err
	}
	registry := docker.NewResolver(docker.ResolverOptions{Hosts: hosts})
	name, desc, err := registry.Resolve(ctx, ref)
	if err != nil {
		return err
	}
	fetcher, err := registry.Fetcher(ctx, name)
	if err != nil {
		return err
	}
	return o.readManifest(ctx, fetcher, desc)
}

// maxManifest is the largest manifest of a base image in bytes.
const maxManifest = 4 << 20

func (o *output) readManifest(ctx context.Context, from remotes.Fetcher, desc ocispec.Descriptor) error {
	if desc.Size > maxManifest {
		return fmt.Errorf("it has %d bytes, more than %d: %w", desc.Size, int64(maxManifest), errdefs.ErrInvalidArgument)
	}
	in, err := from.Fetch(ctx, desc)
	if err != nil {
		return err
	}
	defer in.Close()
	var m struct {
		Manifests []ocispec.Descriptor
		Layers    []ocispec.Descriptor
	}
	if err := json.NewDecoder(in).Decode(&m); err != nil {
		return err
	}
	here := platforms.Default()
	for _, one := range m.Manifests {
		if one.Platform != nil && here.Match(*one.Platform) {
			return o.readManifest(ctx, from, one)
		}
	}
	for _, l := range m.Layers {
		o.base[l.Digest] = true
	}
	return nil
}

// Writer implements content.Ingester. BuildKit sends layers and the configuration before the manifest.
func (o *output) Writer(ctx context.Context, opts ...content.WriterOpt) (content.Writer, error) {
	var w content.WriterOpts
	for _, opt := range opts {
		if err := opt(&w); err != nil {
			return nil, err
		}
	}
	desc := w.Desc
	if desc.Digest == "" {
		return nil, fmt.Errorf("a blob without a digest: %w", errdefs.ErrInvalidArgument)
	}
	if strings.Contains(w.Ref, "manifest-") {
		return &manifest{output: o, ctx: ctx, ref: w.Ref, desc: desc}, nil
	}
	if err := o.count(w.Ref, desc); err != nil {
		return nil, err
	}
	desc.MediaType = "application/octet-stream"
	to, err := o.pusher.Push(ctx, desc)
	if err == nil {
		o.mu.Lock()
		o.done.Sent += desc.Size
		o.mu.Unlock()
	}
	return to, err
}

// count adds a layer that no base image has.
func (o *output) count(ref string, desc ocispec.Descriptor) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.base[desc.Digest] || o.added[desc.Digest] || !strings.Contains(ref, "layer-") {
		return nil
	}
	o.added[desc.Digest] = true
	o.done.LayerBytes += desc.Size
	if o.max > 0 && o.done.LayerBytes > o.max {
		return fmt.Errorf("the new layers have %d bytes, more than the limit of %d: %w", o.done.LayerBytes, o.max, errdefs.ErrFailedPrecondition)
	}
	return nil
}

func (o *output) result(digest string) *build.Result {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.done
	out.Digest = digest
	return &out
}

// manifest collects a manifest, because only its text has its type.
type manifest struct {
	*output
	ctx  context.Context
	ref  string
	desc ocispec.Descriptor
	text bytes.Buffer
}

func (m *manifest) Write(p []byte) (int, error) {
	if m.text.Len()+len(p) > maxManifest {
		return 0, fmt.Errorf("a manifest above %d bytes: %w", int64(maxManifest), errdefs.ErrInvalidArgument)
	}
	return m.text.Write(p)
}

func (m *manifest) Close() error { return nil }

func (m *manifest) Digest() digest.Digest { return digest.FromBytes(m.text.Bytes()) }

func (m *manifest) Truncate(size int64) error {
	m.text.Truncate(int(size))
	return nil
}

func (m *manifest) Status() (content.Status, error) {
	return content.Status{Ref: m.ref, Offset: int64(m.text.Len()), Total: m.desc.Size, Expected: m.desc.Digest}, nil
}

// Commit sends the manifest.
func (m *manifest) Commit(ctx context.Context, size int64, expected digest.Digest, _ ...content.Opt) error {
	text := m.text.Bytes()
	if got := digest.FromBytes(text); got != m.desc.Digest || expected != "" && got != expected {
		return fmt.Errorf("the manifest has the digest %s, not %s: %w", got, m.desc.Digest, errdefs.ErrFailedPrecondition)
	}
	var kind struct{ MediaType string }
	if err := json.Unmarshal(text, &kind); err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	return m.pusher.Bytes(ctx, kind.MediaType, text)
}
