package containerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/internal/clock"
)

const (
	// maxDocument limits the size of an index or a manifest that comes from another agent.
	maxDocument = 4 << 20
	// registryTries is the number of failed fetches from the registry after which a pull gives up; the wait
	// between them doubles.
	registryTries = 4
	firstRetry    = 500 * time.Millisecond
	// maxSources limits the sources of one part, for agents that stop again and again.
	maxSources = 24
	copySize   = 1 << 20
)

// fetch fetches the parts of one image into containerd's content store, from other agents or from the
// registry. containerd's own client then finds them there.
type fetch struct {
	runtime  *Runtime
	req      runtime.PullRequest
	resolver remotes.Resolver
	mirrors  []mirror

	mu        sync.Mutex
	documents [][]byte // the index and the manifest, as far as they are present
	root      []byte   // the first of them, if it came from another agent or a mirror
	agents    int64    // bytes that came from other agents
	registry  int64    // bytes that came from the registry
	mirrored  int64    // bytes that came from its mirrors
	last      time.Time
}

// received counts bytes by their source.
func (f *fetch) received(n int, source string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = time.Now()
	switch source {
	case fromAgent:
		f.agents += int64(n)
	case fromMirror:
		f.mirrored += int64(n)
	default:
		f.registry += int64(n)
	}
}

// log logs a pull that has ended. Layers are unpacked one after the other, from the first on, while others are
// fetched.
func (f *fetch) log(begun time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fetched := f.last
	if fetched.IsZero() {
		fetched = begun
	}
	f.runtime.cfg.Logger.Info("image pulled", "image", f.req.Reference, "digest", f.req.Digest, "fromRegistry", f.registry, "fromMirrors", f.mirrored, "fromAgents", f.agents,
		"fetched", fetched.Sub(begun).Round(time.Millisecond), "took", time.Since(begun).Round(time.Millisecond))
}

// pinned returns the reference with the digest, if one is known.
func (f *fetch) pinned() string {
	if f.req.Digest == "" || strings.Contains(f.req.Reference, "@") {
		return f.req.Reference
	}
	return f.req.Reference + "@" + f.req.Digest
}

// resolve returns the descriptor of the image. With a digest, it comes from another agent if one has the image:
// then the registry is not needed. The registry is asked for the digest, not for the tag, which may have moved.
func (f *fetch) resolve(ctx context.Context) (desc ocispec.Descriptor, err error) {
	reference := f.pinned()
	for wait, try := firstRetry, 1; ; wait, try = wait*2, try+1 {
		if desc, err = f.fromPeer(ctx); err == nil {
			return desc, nil
		}
		if desc, err = f.resolveAtMirrors(ctx); err == nil {
			return desc, nil
		}
		_, desc, err = f.resolver.Resolve(ctx, reference)
		if err == nil || final(err) || f.req.Peers == nil || try == registryTries || clock.Pause(ctx, wait) != nil {
			break
		}
	}
	if errdefs.IsNotFound(err) && reference != f.req.Reference {
		return desc, fmt.Errorf("the registry of image %s no longer has %s: %w: %w",
			f.req.Reference, f.req.Digest, errdefs.ErrFailedPrecondition, err)
	}
	if err != nil {
		return desc, fmt.Errorf("resolve image %s: %w", reference, err)
	}
	if f.req.Digest != "" && desc.Digest.String() != f.req.Digest {
		return desc, fmt.Errorf("image %s is %s at its registry, not %s: %w",
			f.req.Reference, desc.Digest, f.req.Digest, errdefs.ErrFailedPrecondition)
	}
	return desc, nil
}

// final reports whether the registry would answer the same again.
func final(err error) bool {
	return errdefs.IsNotFound(err) || errdefs.IsInvalidArgument(err) || errdefs.IsUnauthorized(err) || errdefs.IsPermissionDenied(err)
}

// fromPeer reads the index or manifest of the image from another agent.
func (f *fetch) fromPeer(ctx context.Context) (desc ocispec.Descriptor, err error) {
	if f.req.Peers == nil || f.req.Digest == "" {
		return desc, errdefs.ErrNotFound
	}
	from, err := f.req.Peers.Open(ctx, runtime.PartRequest{Digest: f.req.Digest})
	if err != nil || from == nil {
		return desc, errors.Join(err, errdefs.ErrNotFound)
	}
	defer from.Close()
	text, err := io.ReadAll(io.LimitReader(from, maxDocument+1))
	if err != nil {
		return desc, err
	}
	if len(text) > maxDocument || digest.FromBytes(text).String() != f.req.Digest {
		from.Corrupt(ctx)
		return desc, fmt.Errorf("manifest from agent %s does not have digest %s: %w", from.Agent(), f.req.Digest, errdefs.ErrDataLoss)
	}
	return f.rooted(text)
}

// rooted remembers the index or manifest that has the digest of the request, and returns its descriptor.
func (f *fetch) rooted(text []byte) (desc ocispec.Descriptor, err error) {
	kind, err := mediaType(text)
	if err != nil {
		return desc, err
	}
	f.root = text
	return ocispec.Descriptor{MediaType: kind, Digest: digest.Digest(f.req.Digest), Size: int64(len(text))}, nil
}

// mediaType returns the media type of an index or a manifest.
func mediaType(text []byte) (string, error) {
	var d struct {
		MediaType string            `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return "", fmt.Errorf("manifest: %v: %w", err, errdefs.ErrInvalidArgument)
	}
	switch {
	case images.IsManifestType(d.MediaType), images.IsIndexType(d.MediaType):
		return d.MediaType, nil
	case d.MediaType != "":
		return "", fmt.Errorf("media type %.80q is not that of an image: %w", d.MediaType, errdefs.ErrInvalidArgument)
	case len(d.Manifests) > 0:
		return ocispec.MediaTypeImageIndex, nil
	}
	return ocispec.MediaTypeImageManifest, nil
}

// part makes a part of the image present. It is called before containerd's own fetch, which then has nothing
// to do.
func (f *fetch) part(ctx context.Context, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	if desc.Size <= 0 || desc.Digest.Validate() != nil {
		return nil, nil // containerd refuses it with a reason
	}
	if images.IsLayerType(desc.MediaType) {
		select {
		case f.runtime.transfers <- struct{}{}:
			defer func() { <-f.runtime.transfers }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	// Only its registry and other agents send a part: an address in a manifest could lead anywhere.
	desc.URLs = nil
	one := &partFetch{fetch: f, desc: desc, ref: remotes.MakeRefKey(ctx, desc)}
	err := one.run(ctx)
	if one.asked {
		f.req.Peers.Ended(desc.Digest.String(), err == nil)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", desc.Digest, err)
	}
	if images.IsManifestType(desc.MediaType) || images.IsIndexType(desc.MediaType) {
		return nil, f.document(ctx, desc)
	}
	return nil, nil
}

// document remembers an index or a manifest.
func (f *fetch) document(ctx context.Context, desc ocispec.Descriptor) error {
	if desc.Size > maxDocument {
		return nil // other agents would not accept it
	}
	text, err := content.ReadBlob(ctx, f.runtime.client.ContentStore(), desc)
	if err != nil {
		return fmt.Errorf("read %s: %w", desc.Digest, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.documents = append(f.documents, text)
	return nil
}

func (f *fetch) known() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.documents[:len(f.documents):len(f.documents)]
}

func (f *fetch) count(source, result string) {
	if f.runtime.cfg.Fetched != nil {
		f.runtime.cfg.Fetched.Fetched(source, result)
	}
}
