package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/access"
)

// The sources of the parts of an image, in metrics.
const (
	fromRegistry = "registry"
	fromMirror   = "mirror"
	fromAgent    = "agent"
)

// mirror is a server that has copies of the images of a registry.
type mirror struct {
	host     string
	resolver remotes.Resolver
}

// mirrorsOf returns the mirrors of a request. A mirror can only be asked for content with a known digest: what a tag
// stands for, the registry alone decides. It gets its own credentials, never those of the registry.
func mirrorsOf(req runtime.PullRequest) ([]mirror, error) {
	if req.Digest == "" {
		return nil, nil
	}
	var out []mirror
	for _, m := range req.Mirrors {
		hosts, err := access.Registry{
			PlainHTTP: m.PlainHTTP, Username: m.Username, Password: m.Password, Proxy: req.Proxy, Certificates: req.Certificates,
		}.Hosts()
		if err != nil {
			return nil, err
		}
		at := func(string) ([]docker.RegistryHost, error) { return hosts(m.Host) }
		out = append(out, mirror{m.Host, docker.NewResolver(docker.ResolverOptions{Hosts: at})})
	}
	return out, nil
}

// resolveAtMirrors reads the index or manifest of the image from the first mirror that has it.
func (f *fetch) resolveAtMirrors(ctx context.Context) (desc ocispec.Descriptor, err error) {
	err = errdefs.ErrNotFound
	for _, m := range f.mirrors {
		text, failure := f.manifestAt(ctx, m)
		if failure == nil {
			f.received(len(text), fromMirror)
			return f.rooted(text)
		}
		f.runtime.cfg.Logger.Warn("mirror does not have an image", "mirror", m.host, "image", f.req.Reference, "digest", f.req.Digest, "error", failure)
		err = errors.Join(err, failure)
	}
	return desc, err
}

// manifestAt reads the index or manifest of the image from a mirror, and checks its digest.
func (f *fetch) manifestAt(ctx context.Context, m mirror) ([]byte, error) {
	name, desc, err := m.resolver.Resolve(ctx, f.pinned())
	if err != nil {
		return nil, err
	}
	if desc.Size <= 0 || desc.Size > maxDocument {
		return nil, fmt.Errorf("its manifest has %d bytes, not up to %d: %w", desc.Size, maxDocument, errdefs.ErrInvalidArgument)
	}
	fetcher, err := m.resolver.Fetcher(ctx, name)
	if err != nil {
		return nil, err
	}
	from, err := fetcher.Fetch(ctx, desc)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	text, err := io.ReadAll(io.LimitReader(from, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if got := digest.FromBytes(text); got.String() != f.req.Digest {
		return nil, fmt.Errorf("it sends %s: %w", got, errdefs.ErrDataLoss)
	}
	return text, nil
}

// openMirror opens the part at the next mirror, and returns nil if there is none that can be asked.
func (p *partFetch) openMirror(ctx context.Context, offset int64) io.ReadCloser {
	for ; p.mirror < len(p.mirrors); p.mirror++ {
		p.source = fromMirror
		from, err := p.openAt(ctx, p.mirrors[p.mirror].resolver, offset)
		if err == nil {
			return from
		}
		p.count(fromMirror, "failed")
	}
	p.source = fromRegistry
	return nil
}

// nextMirror leaves a mirror that did not deliver the part.
func (p *partFetch) nextMirror() {
	if p.source == fromMirror {
		p.mirror++
	}
}
