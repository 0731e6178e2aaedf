package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// refName is the annotation by which an OCI layout names its images.
const refName = "org.opencontainers.image.ref.name"

// Import imports the named images of an OCI layout into the registry and returns their names, such
// as python:3.11. An image that exists already costs only one check.
func (r *Registry) Import(ctx context.Context, layoutDir string) ([]string, error) {
	transport, stop := r.inside(ctx)
	defer stop()
	return push(ctx, layoutDir, "registry.invalid", remote.WithTransport(transport))
}

// ImportAll imports every layout below dir, such as build/images.
func (r *Registry) ImportAll(ctx context.Context, dir string) ([]string, error) {
	layouts, err := filepath.Glob(filepath.Join(dir, "*", "index.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(layouts)
	var names []string
	for _, l := range layouts {
		n, err := r.Import(ctx, filepath.Dir(l))
		if err != nil {
			return names, err
		}
		names = append(names, n...)
	}
	return names, nil
}

// inside is a transport to the registry that no other process can use: connections are pipes in
// memory.
func (r *Registry) inside(ctx context.Context) (http.RoundTripper, func()) {
	ctx, cancel := context.WithCancel(ctx)
	l := pipes{conns: make(chan net.Conn), closed: ctx.Done()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			r.serve(w, req, access{all: true})
		}))
	}()
	t := &http.Transport{DialContext: l.dial, DisableCompression: true}
	return t, func() {
		t.CloseIdleConnections()
		cancel()
		<-done
	}
}

// pipes is a listener whose connections never leave the process.
type pipes struct {
	conns  chan net.Conn
	closed <-chan struct{}
}

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// push copies the named images of a layout to the registry at host.
func push(ctx context.Context, layoutDir, host string, opts ...remote.Option) ([]string, error) {
	index, err := layout.ImageIndexFromPath(layoutDir)
	if err != nil {
		return nil, fmt.Errorf("read layout %s: %w", layoutDir, err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read layout %s: %w", layoutDir, err)
	}
	opts = append(opts, remote.WithContext(ctx))
	var names []string
	for _, d := range m.Manifests {
		n := d.Annotations[refName]
		if n == "" {
			return nil, fmt.Errorf("read layout %s: image %s has no name: %w", layoutDir, d.Digest, errdefs.ErrInvalidArgument)
		}
		ref, err := name.ParseReference(host+"/"+n, name.Insecure)
		if err != nil {
			return nil, fmt.Errorf("read layout %s: %w: %w", layoutDir, errdefs.ErrInvalidArgument, err)
		}
		if err := pushOne(index, d, ref, opts); err != nil {
			return nil, fmt.Errorf("push %s: %w", n, err)
		}
		names = append(names, n)
	}
	return names, nil
}

func pushOne(index v1.ImageIndex, d v1.Descriptor, ref name.Reference, opts []remote.Option) error {
	if there, err := remote.Head(ref, opts...); err == nil && there.Digest == d.Digest {
		return nil
	}
	if d.MediaType.IsIndex() {
		sub, err := index.ImageIndex(d.Digest)
		if err != nil {
			return err
		}
		return remote.WriteIndex(ref, sub, opts...)
	}
	if !d.MediaType.IsImage() {
		return errors.New("it is neither an image nor an index")
	}
	img, err := index.Image(d.Digest)
	if err != nil {
		return err
	}
	return remote.Write(ref, img, opts...)
}
