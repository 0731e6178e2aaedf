package builder

import (
	"context"
	"fmt"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// nothing is the reading part of a content store without content.
type nothing struct{}

func missing(what any) error { return fmt.Errorf("content %v: %w", what, errdefs.ErrNotFound) }

func (nothing) Info(_ context.Context, d digest.Digest) (content.Info, error) {
	return content.Info{}, missing(d)
}

func (nothing) Update(_ context.Context, i content.Info, _ ...string) (content.Info, error) {
	return content.Info{}, missing(i.Digest)
}

func (nothing) Walk(context.Context, content.WalkFunc, ...string) error { return nil }

func (nothing) Delete(_ context.Context, d digest.Digest) error { return missing(d) }

func (nothing) ReaderAt(_ context.Context, d ocispec.Descriptor) (content.ReaderAt, error) {
	return nil, missing(d.Digest)
}

func (nothing) Status(_ context.Context, ref string) (content.Status, error) {
	return content.Status{}, missing(ref)
}

func (nothing) ListStatuses(context.Context, ...string) ([]content.Status, error) { return nil, nil }

func (nothing) Abort(context.Context, string) error { return nil }
