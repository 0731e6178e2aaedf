package containerd

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/agent/runtime"
)

const snapshotter = "overlayfs"

// parsedImage is the part of an image that never changes for a manifest digest. It is cached so
// that a start need not read it from the content store.
type parsedImage struct {
	config ocispec.Image
	parent string // parent of the containers' snapshots
	parts  []runtime.ImagePart
}

// Image returns a present image, and NotFound if it was not pulled.
func (r *Runtime) Image(ctx context.Context, reference string) (runtime.Image, error) {
	ctx = named(ctx)
	img, err := r.client.GetImage(ctx, reference)
	if errdefs.IsNotFound(err) {
		return runtime.Image{}, fmt.Errorf("image %s is not on this node: %w", reference, errdefs.ErrNotFound)
	}
	if err != nil {
		return runtime.Image{}, fmt.Errorf("image %s: %w", reference, err)
	}
	return r.describe(ctx, img)
}

// Images returns the complete images that are present.
func (r *Runtime) Images(ctx context.Context) ([]runtime.Image, error) {
	ctx = named(ctx)
	list, err := r.client.ListImages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	out := make([]runtime.Image, 0, len(list))
	for _, img := range list {
		described, err := r.describe(ctx, img)
		if err != nil {
			r.cfg.Logger.Debug("image left out", "image", img.Name(), "error", err)
			continue
		}
		parsed, err := r.parse(ctx, img) // remembered by describe
		if err != nil {
			continue
		}
		described.Parts, described.Used, described.Whole = parsed.parts, r.lastUse(img), img.Labels()[labelWhole]
		if s, ok := r.lazyOf(described.Digest); ok {
			described.Lazy = &runtime.LazyState{Local: s.Local, Total: s.Total, Failing: s.Failing}
		}
		out = append(out, described)
	}
	return out, nil
}

func (r *Runtime) describe(ctx context.Context, img client.Image) (runtime.Image, error) {
	p, err := r.parse(ctx, img)
	if err != nil {
		return runtime.Image{}, err
	}
	c := p.config
	return runtime.Image{
		Reference: img.Name(), Digest: img.Target().Digest.String(), Architecture: c.Architecture,
		Env: c.Config.Env, Entrypoint: c.Config.Entrypoint, WorkingDir: c.Config.WorkingDir, User: c.Config.User,
	}, nil
}

func (r *Runtime) parse(ctx context.Context, img client.Image) (parsedImage, error) {
	key := img.Target().Digest.String()
	r.mu.Lock()
	p, ok := r.images[key]
	r.mu.Unlock()
	if ok {
		return p, nil
	}
	_, lazy := r.lazyOf(key) // its list of parts grows
	desc, err := img.Config(ctx)
	if err != nil {
		return parsedImage{}, fmt.Errorf("image %s: find configuration: %w", img.Name(), err)
	}
	blob, err := content.ReadBlob(ctx, img.ContentStore(), desc)
	if err != nil {
		return parsedImage{}, fmt.Errorf("image %s: read configuration: %w", img.Name(), err)
	}
	if err := json.Unmarshal(blob, &p.config); err != nil {
		return parsedImage{}, fmt.Errorf("image %s: configuration: %w: %w", img.Name(), err, errdefs.ErrInvalidArgument)
	}
	if p.parts, err = presentParts(ctx, img); err != nil {
		return parsedImage{}, fmt.Errorf("image %s: list parts: %w", img.Name(), err)
	}
	p.parent = identity.ChainID(p.config.RootFS.DiffIDs).String()
	if lazy {
		return p, nil
	}
	r.mu.Lock()
	r.images[key] = p
	r.mu.Unlock()
	return p, nil
}

// presentParts returns the parts of an image that are present. An index also names the manifests of other
// architectures.
func presentParts(ctx context.Context, img client.Image) (parts []runtime.ImagePart, err error) {
	store := img.ContentStore()
	children := images.ChildrenHandler(store)
	err = images.Walk(ctx, images.HandlerFunc(func(ctx context.Context, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		if _, err := store.Info(ctx, desc.Digest); err != nil {
			if errdefs.IsNotFound(err) {
				err = images.ErrSkipDesc
			}
			return nil, err
		}
		parts = append(parts, runtime.ImagePart{Digest: desc.Digest.String(), Size: desc.Size})
		return children(ctx, desc)
	}), img.Target())
	return parts, err
}
