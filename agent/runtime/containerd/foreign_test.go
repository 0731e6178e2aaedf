package containerd

import (
	"context"
	"testing"

	"github.com/containerd/containerd/v2/core/images"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestForeignLayers drops the addresses that a manifest names for its layers.
func TestForeignLayers(t *testing.T) {
	inner := images.HandlerFunc(func(context.Context, ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		return []ocispec.Descriptor{{Size: 1, URLs: []string{"http://169.254.169.254/latest"}}, {Size: 2}}, nil
	})
	got, err := withoutURLs(inner).Handle(t.Context(), ocispec.Descriptor{})
	if err != nil || len(got) != 2 || got[0].URLs != nil || got[0].Size != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}
