package runtimetest

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Registry is an in-memory image registry that lives as long as one test.
type Registry struct{ Host string }

// NewRegistry starts a registry.
func NewRegistry(t testing.TB) *Registry {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return &Registry{Host: strings.TrimPrefix(s.URL, "http://")}
}

// Push builds the test image, a static program with the given configuration, and returns its
// reference and digest.
func (r *Registry) Push(t testing.TB, repository string, prog string, config v1.Config) (reference, digest string) {
	t.Helper()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return rootFS(prog) })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", goarch, config
	if img, err = mutate.ConfigFile(img, file); err != nil {
		t.Fatal(err)
	}
	reference = r.Host + "/" + repository + ":latest"
	ref, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return reference, hash.String()
}

// rootFS is the whole file system: no shell, no libc.
func rootFS(prog string) (io.ReadCloser, error) {
	binary, err := os.ReadFile(prog)
	if err != nil {
		return nil, err
	}
	passwd := []byte("root:x:0:0::/:/bin/prog\nworker:x:1000:1000::/home/work:/bin/prog\n")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name string
		mode int64
		data []byte
	}{
		{"bin/", 0o755, nil}, {"bin/prog", 0o755, binary},
		{"etc/", 0o755, nil}, {"etc/passwd", 0o644, passwd}, {"etc/group", 0o644, []byte("root:x:0:\nworker:x:1000:\n")},
		{"tmp/", 0o1777, nil},
	} {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), Typeflag: tar.TypeReg}
		if f.data == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return io.NopCloser(&b), nil
}
