package push

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Pusher sends the parts of an image one by one. The manifest must be the last one.
type Pusher struct {
	target Target
	remote remotes.Pusher
}

// NewPusher returns a Pusher for a repository. It does not contact the registry.
func NewPusher(ctx context.Context, t Target) (*Pusher, error) {
	remote, err := resolver(t).Pusher(ctx, t.Repository)
	if err != nil {
		return nil, fmt.Errorf("push to %s: %w", t.Repository, err)
	}
	return &Pusher{target: t, remote: remote}, nil
}

// Push implements remotes.Pusher: it returns a writer of one part, and AlreadyExists if the registry has it, or
// could take it from the target's MountFrom.
func (p *Pusher) Push(ctx context.Context, desc ocispec.Descriptor) (content.Writer, error) {
	if p.target.MountFrom != "" && !images.IsManifestType(desc.MediaType) {
		host, _, _ := strings.Cut(p.target.Repository, "/")
		desc.Annotations = maps.Clone(desc.Annotations)
		if desc.Annotations == nil {
			desc.Annotations = map[string]string{}
		}
		desc.Annotations["containerd.io/distribution.source."+host] = p.target.MountFrom
	}
	return p.remote.Push(ctx, desc)
}

// Bytes sends a part that is in memory, unless the registry has it.
func (p *Pusher) Bytes(ctx context.Context, mediaType string, b []byte) error {
	l := text(mediaType, b)
	w, err := p.Push(ctx, l.Descriptor)
	if errdefs.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Close()
	r, err := l.Open(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := content.Copy(ctx, w, r, l.Size, l.Digest); err != nil && !errdefs.IsAlreadyExists(err) {
		return err
	}
	return nil
}
