package build_test

import (
	"testing"

	"github.com/containerd/stargz-snapshotter/estargz"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestIndexedBuild builds an image whose layers all have an index, also those of its base image.
func TestIndexedBuild(t *testing.T) {
	s := newSite(t)
	r := s.request("FROM base\nCOPY <<EOF /note\nhello\nEOF\n")
	r.Indexed = true
	done, _ := s.must(t, "p", r)
	if done.LayerBytes == 0 {
		t.Errorf("the new layers have no bytes: %+v", done)
	}
	ref, err := name.ParseReference(r.Output.Name+"@"+done.Digest, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	m, err := img.Manifest()
	if err != nil || len(m.Layers) < 2 {
		t.Fatalf("manifest is %+v (%v)", m, err)
	}
	for i, l := range m.Layers {
		if l.Annotations[estargz.TOCJSONDigestAnnotation] == "" || l.MediaType != "application/vnd.oci.image.layer.v1.tar+gzip" {
			t.Errorf("layer %d is %+v", i, l)
		}
	}
	if again, _ := s.must(t, "other", r); again.Digest != done.Digest {
		t.Errorf("the same build in another project is %s, want %s", again.Digest, done.Digest)
	}
}
