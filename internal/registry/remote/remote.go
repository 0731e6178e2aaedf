// Package remote reads OCI registries: their repositories, their tags, and the properties of
// images. The manager imports it to register images.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/berthhq/berth/internal/egress"
)

// Registry is the connection data of a registry.
type Registry struct {
	Host               string // host and port, without a scheme
	PlainHTTP          bool
	Username, Password string // both empty: anonymous
}

// Image is the image of a tag for one architecture.
type Image struct {
	Name         string // repository:tag
	Architecture string // as Go calls it: amd64, arm64
	Digest       string // of this architecture's manifest
	Size         int64  // bytes to download
	Labels       map[string]string
}

// Repositories lists the names of all repositories. The error is ErrNotImplemented or
// ErrPermissionDenied for a registry that does not allow this.
func (r Registry) Repositories(ctx context.Context) ([]string, error) {
	reg, err := r.registry()
	if err != nil {
		return nil, err
	}
	names, err := remote.Catalog(ctx, reg, r.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("list repositories of %s: %w", r.Host, classify(err))
	}
	return names, nil
}

// Tags lists the tags of a repository.
func (r Registry) Tags(ctx context.Context, repository string) ([]string, error) {
	repo, err := r.repository(repository)
	if err != nil {
		return nil, err
	}
	tags, err := remote.List(repo, r.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("list tags of %s: %w", repo, classify(err))
	}
	return tags, nil
}

// Inspect reads an image (repository:tag or repository@digest): one Image for each Linux
// architecture that it has.
func (r Registry) Inspect(ctx context.Context, image string) ([]Image, error) {
	ref, err := r.reference(image)
	if err != nil {
		return nil, err
	}
	d, err := remote.Get(ref, r.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", ref, classify(err))
	}
	images, err := read(d, image)
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", ref, classify(err))
	}
	return images, nil
}

// Scan reads every tag of every repository and calls found with its images, or with the error. It
// ends early with an error that found returns.
func (r Registry) Scan(ctx context.Context, found func(name string, images []Image, err error) error) error {
	repos, err := r.Repositories(ctx)
	if err != nil {
		return err
	}
	for _, repo := range repos {
		tags, err := r.Tags(ctx, repo)
		if errdefs.IsNotFound(err) { // all of its tags were deleted
			continue
		}
		if err != nil {
			return err
		}
		for _, tag := range tags {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := repo + ":" + tag
			images, err := r.Inspect(ctx, n)
			if err := found(n, images, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// dialling reaches registries, but no metadata service of a machine.
var dialling = egress.Named()

func (r Registry) options(ctx context.Context) []remote.Option {
	opts := []remote.Option{remote.WithContext(ctx), remote.WithTransport(dialling)}
	if r.Username != "" || r.Password != "" {
		opts = append(opts, remote.WithAuth(&authn.Basic{Username: r.Username, Password: r.Password}))
	}
	return opts
}

// read turns a tag's manifest, or each manifest of its index, into an Image.
func read(d *remote.Descriptor, name string) ([]Image, error) {
	if !d.MediaType.IsIndex() {
		img, err := d.Image()
		if err != nil {
			return nil, err
		}
		one, err := describe(img, name)
		if err != nil {
			return nil, err
		}
		return []Image{one}, nil
	}
	index, err := d.ImageIndex()
	if err != nil {
		return nil, err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var images []Image
	for _, e := range m.Manifests {
		// In addition to images, an index can have signatures and build records.
		if !e.MediaType.IsImage() || e.Platform == nil || e.Platform.OS != "linux" {
			continue
		}
		img, err := index.Image(e.Digest)
		if err != nil {
			return nil, err
		}
		one, err := describe(img, name)
		if err != nil {
			return nil, err
		}
		images = append(images, one)
	}
	return images, nil
}

func describe(img v1.Image, name string) (Image, error) {
	m, err := img.Manifest()
	if err != nil {
		return Image{}, err
	}
	c, err := img.ConfigFile()
	if err != nil {
		return Image{}, err
	}
	digest, err := img.Digest()
	if err != nil {
		return Image{}, err
	}
	size := m.Config.Size
	for _, l := range m.Layers {
		size += l.Size
	}
	return Image{Name: name, Architecture: c.Architecture, Digest: digest.String(), Size: size, Labels: c.Config.Labels}, nil
}

// classify adds the error class to a registry's answer.
func classify(err error) error {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return fmt.Errorf("%w: %w", errdefs.ErrUnavailable, err)
	}
	var class error = errdefs.ErrUnavailable
	switch answer.StatusCode {
	case http.StatusNotFound:
		class = errdefs.ErrNotFound
	case http.StatusUnauthorized:
		class = errdefs.ErrUnauthenticated
	case http.StatusForbidden:
		class = errdefs.ErrPermissionDenied
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		class = errdefs.ErrNotImplemented
	}
	return fmt.Errorf("%w: %w", class, err)
}

// Tag gives an image (repository@digest) a tag.
func (r Registry) Tag(ctx context.Context, image, tag string) error {
	ref, err := r.reference(image)
	if err != nil {
		return err
	}
	if !tagRule.MatchString(tag) {
		return fmt.Errorf("tag %q is invalid: %w", tag, errdefs.ErrInvalidArgument)
	}
	d, err := remote.Get(ref, r.options(ctx)...)
	if err == nil {
		err = remote.Tag(ref.Context().Tag(tag), d, r.options(ctx)...)
	}
	if err != nil {
		return fmt.Errorf("tag image %s as %s: %w", ref, tag, classify(err))
	}
	return nil
}

// Delete removes an image (repository@digest) and its tags. Its layers stay until the registry
// collects garbage. A missing image is not an error.
func (r Registry) Delete(ctx context.Context, image string) error {
	ref, err := r.reference(image)
	if err != nil {
		return err
	}
	if err := remote.Delete(ref, r.options(ctx)...); err != nil && !errdefs.IsNotFound(classify(err)) {
		return fmt.Errorf("delete image %s: %w", ref, classify(err))
	}
	return nil
}
