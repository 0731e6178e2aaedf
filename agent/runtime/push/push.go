// Package push sends an image to a repository of a registry: its layers, its configuration and its
// manifest, in this order, so that the registry never has a manifest without its parts. Content that
// the registry has already is not sent.
package push

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Target is a repository and the credentials for it.
type Target struct {
	Repository string // host/path, also with a tag
	PlainHTTP  bool
	Transport  *http.Transport // nil: that of the environment
	Username   string
	Password   string
	MountFrom  string // another repository of the registry that has the layers of the base image
}

// Layer is a layer and its compressed content.
type Layer struct {
	ocispec.Descriptor
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Image is an image to send.
type Image struct {
	Config      ocispec.Image
	Layers      []Layer
	Annotations map[string]string
	// Original is the configuration and the manifest of an image that is sent as it is. nil: they are
	// made from the other fields.
	Original *Original
}

// Original is an image as another registry had it.
type Original struct {
	Config, Manifest         []byte
	ConfigType, ManifestType string
}

// Result is an image at its registry.
type Result struct {
	Digest string
	Size   int64 // of all layers and the configuration
	Sent   int64 // bytes that the registry did not have
}

// Push sends an image without a tag, and reports the bytes that are done.
func Push(ctx context.Context, t Target, img Image, progress func(done, total int64)) (Result, error) {
	pusher, err := NewPusher(ctx, t)
	if err != nil {
		return Result{}, err
	}
	config, manifest, err := img.encode()
	if err != nil {
		return Result{}, err
	}
	s := &sender{pusher: pusher, progress: progress, size: config.Size}
	for _, l := range img.Layers {
		s.size += l.Size
	}
	for _, l := range img.Layers {
		if err := s.send(ctx, l); err != nil {
			return Result{}, fmt.Errorf("push layer %s to %s: %w", l.Digest, t.Repository, err)
		}
	}
	for _, l := range []Layer{config, manifest} {
		if err := s.send(ctx, l); err != nil {
			return Result{}, fmt.Errorf("push %s to %s: %w", l.MediaType, t.Repository, err)
		}
	}
	return Result{Digest: manifest.Digest.String(), Size: s.size, Sent: s.sent}, nil
}

func resolver(t Target) remotes.Resolver {
	authorizer := docker.NewDockerAuthorizer(docker.WithAuthCreds(func(string) (string, string, error) {
		return t.Username, t.Password, nil
	}))
	// The duration of an upload is not limited, but the registry must start its response in time.
	transport := t.Transport
	if transport == nil {
		transport = docker.DefaultHTTPTransport(nil)
	}
	transport.ResponseHeaderTimeout = 2 * time.Minute
	return docker.NewResolver(docker.ResolverOptions{Hosts: docker.ConfigureDefaultRegistries(
		docker.WithAuthorizer(authorizer),
		docker.WithClient(&http.Client{Transport: transport}),
		docker.WithPlainHTTP(func(string) (bool, error) { return t.PlainHTTP, nil }),
	)})
}

// encode returns the configuration and the manifest.
func (img Image) encode() (config, manifest Layer, err error) {
	if o := img.Original; o != nil {
		return text(o.ConfigType, o.Config), text(o.ManifestType, o.Manifest), nil
	}
	b, err := json.Marshal(img.Config)
	if err != nil {
		return config, manifest, fmt.Errorf("encode the configuration of an image: %w", err)
	}
	config = text(ocispec.MediaTypeImageConfig, b)
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: config.Descriptor, Annotations: img.Annotations,
	}
	for _, l := range img.Layers {
		m.Layers = append(m.Layers, ocispec.Descriptor{MediaType: l.MediaType, Digest: l.Digest, Size: l.Size, Annotations: indexOf(l.Annotations)})
	}
	if b, err = json.Marshal(m); err != nil {
		return config, manifest, fmt.Errorf("encode the manifest of an image: %w", err)
	}
	return config, text(ocispec.MediaTypeImageManifest, b), nil
}

// indexOf returns the annotations that find the index of a layer's files.
func indexOf(all map[string]string) (kept map[string]string) {
	for name, value := range all {
		if strings.HasPrefix(name, "containerd.io/snapshot/stargz/") || strings.HasPrefix(name, "io.github.containers.zstd-chunked.") {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = value
		}
	}
	return kept
}

// text is a part that is in memory.
func text(mediaType string, b []byte) Layer {
	return Layer{
		Descriptor: ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))},
		Open:       func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
	}
}

type sender struct {
	pusher           *Pusher
	progress         func(done, total int64)
	size, done, sent int64
}

// send sends one part unless the registry has it.
func (s *sender) send(ctx context.Context, l Layer) error {
	w, err := s.pusher.Push(ctx, l.Descriptor)
	if errdefs.IsAlreadyExists(err) {
		s.add(l.Size)
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
	before := s.done
	if err := content.Copy(ctx, w, &read{r, s}, l.Size, l.Digest); err != nil && !errdefs.IsAlreadyExists(err) {
		return err
	}
	s.sent += s.done - before
	return nil
}

func (s *sender) add(n int64) {
	s.done += n
	if s.progress != nil {
		s.progress(min(s.done, s.size), s.size)
	}
}

// read counts what is read of a part.
type read struct {
	io.Reader
	s *sender
}

func (r *read) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.s.add(int64(n))
	return n, err
}
