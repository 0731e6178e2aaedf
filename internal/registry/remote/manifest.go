package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/report"
)

const (
	ociIndex      = "application/vnd.oci.image.index.v1+json"
	ociManifest   = "application/vnd.oci.image.manifest.v1+json"
	dockerList    = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerImage   = "application/vnd.docker.distribution.manifest.v2+json"
	ociConfig     = "application/vnd.oci.image.config.v1+json"
	dockerConfig  = "application/vnd.docker.container.image.v1+json"
	acceptIndexes = ociIndex + ", " + dockerList
)

const acceptManifests = ociManifest + ", " + dockerImage + ", " + acceptIndexes

// Limits of manifests, beside those of their bytes.
const (
	maxLayers  = 1000
	maxEntries = 1000 // of an index
	maxImages  = 32   // Linux architectures of one index
)

// ErrNothing reports that a tag has no image that can run on Linux: it is a chart, a signature or an
// image of another system.
var ErrNothing = errors.New("has no Linux image")

// descriptor is a reference to content. URLs of foreign layers are not read: nothing is fetched from
// them.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	Platform  *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// manifest is a manifest or an index: whichever it is.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
	Manifests     []descriptor `json:"manifests"`
}

func (m *manifest) isIndex(contentType string) bool {
	for _, t := range []string{m.MediaType, contentType} {
		switch t {
		case ociIndex, dockerList:
			return true
		case ociManifest, dockerImage:
			return false
		}
	}
	return len(m.Manifests) > 0
}

// Inspect reads an image (repository:tag or repository@digest). The error has the class
// FailedPrecondition and wraps ErrNothing if there is no Linux image, and InvalidArgument if the
// content is broken.
func (c *Client) Inspect(ctx context.Context, image string) (*Content, error) {
	ref, err := parse(image)
	if err != nil {
		return nil, err
	}
	m, contentType, digest, err := c.manifest(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", image, err)
	}
	out := &Content{Digest: digest}
	if m.isIndex(contentType) {
		out.Images, err = c.index(ctx, ref.path, image, m)
	} else {
		var one *Image
		if one, err = c.describe(ctx, ref.path, image, digest, m); err == nil {
			out.Images = []Image{*one}
		}
	}
	if err != nil {
		return out, fmt.Errorf("read image %s: %w", image, err)
	}
	return out, nil
}

// index reads the Linux images of an index. An index can also have signatures and build records.
func (c *Client) index(ctx context.Context, path, image string, m *manifest) ([]Image, error) {
	if len(m.Manifests) > maxEntries {
		return nil, fmt.Errorf("its index has %d entries, more than %d: %w", len(m.Manifests), maxEntries, errdefs.ErrInvalidArgument)
	}
	var images []Image
	for _, e := range m.Manifests {
		if e.MediaType != ociManifest && e.MediaType != dockerImage || e.Platform == nil || e.Platform.OS != "linux" {
			continue
		}
		if len(images) == maxImages {
			return nil, fmt.Errorf("its index has more than %d Linux images: %w", maxImages, errdefs.ErrInvalidArgument)
		}
		if !digestRule.MatchString(e.Digest) {
			return nil, fmt.Errorf("its index has the digest %.80q: %w", e.Digest, errdefs.ErrInvalidArgument)
		}
		inner, contentType, _, err := c.manifest(ctx, reference{path, e.Digest})
		if err != nil {
			return nil, err
		}
		if inner.isIndex(contentType) {
			return nil, fmt.Errorf("its index contains another index: %w", errdefs.ErrInvalidArgument)
		}
		one, err := c.describe(ctx, path, image, e.Digest, inner)
		if err != nil {
			return nil, err
		}
		images = append(images, *one)
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("its index %w: %w", ErrNothing, errdefs.ErrFailedPrecondition)
	}
	return images, nil
}

// manifest reads and checks one manifest or index.
func (c *Client) manifest(ctx context.Context, ref reference) (m *manifest, contentType, digest string, err error) {
	a, err := c.get(ctx, http.MethodGet, ref.manifest(), pull(ref.path), acceptManifests, maxManifest)
	if err != nil {
		return nil, "", "", err
	}
	digest = sum(a.body)
	if digestRule.MatchString(ref.version) && ref.version != digest {
		return nil, "", "", fmt.Errorf("the registry sends %s for %s: %w", digest, ref.version, errdefs.ErrInvalidArgument)
	}
	if said := a.header.Get(digestHeader); digestRule.MatchString(said) && said != digest {
		return nil, "", "", fmt.Errorf("the registry says that the manifest is %s, and sends %s: %w", said, digest, errdefs.ErrInvalidArgument)
	}
	m = &manifest{}
	if err := json.Unmarshal(a.body, m); err != nil {
		return nil, "", digest, fmt.Errorf("its manifest is not JSON: %w: %w", errdefs.ErrInvalidArgument, err)
	}
	if m.SchemaVersion == 1 {
		return nil, "", digest, fmt.Errorf("its manifest has the old schema 1: %w", errdefs.ErrInvalidArgument)
	}
	return m, a.header.Get("Content-Type"), digest, nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}

// config is the part of an image's configuration that is used.
type config struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Config       struct {
		Labels map[string]string `json:"Labels"`
		Env    []string          `json:"Env"`
	} `json:"config"`
}

// describe reads the configuration of an image.
func (c *Client) describe(ctx context.Context, path, image, digest string, m *manifest) (*Image, error) {
	if t := m.Config.MediaType; t != "" && t != ociConfig && t != dockerConfig {
		return nil, fmt.Errorf("it %w, but content of the type %.80q: %w", ErrNothing, t, errdefs.ErrFailedPrecondition)
	}
	out := &Image{Name: image, Digest: digest, Size: m.Config.Size}
	if len(m.Layers) > maxLayers {
		return nil, fmt.Errorf("it has %d layers, more than %d: %w", len(m.Layers), maxLayers, errdefs.ErrInvalidArgument)
	}
	for _, d := range append([]descriptor{m.Config}, m.Layers...) {
		if !digestRule.MatchString(d.Digest) {
			return nil, fmt.Errorf("its manifest has the digest %.80q: %w", d.Digest, errdefs.ErrInvalidArgument)
		}
		if d.Size < 0 || d.Size > math.MaxInt64/(maxLayers+1) {
			return nil, fmt.Errorf("its manifest has content of %d bytes: %w", d.Size, errdefs.ErrInvalidArgument)
		}
	}
	for _, l := range m.Layers {
		out.Size += l.Size
		out.Layers = append(out.Layers, report.Layer{Digest: l.Digest, Size: l.Size})
	}
	if m.Config.Size > maxConfig {
		return nil, fmt.Errorf("its configuration has %d bytes, more than %d: %w", m.Config.Size, maxConfig, errdefs.ErrInvalidArgument)
	}
	a, err := c.get(ctx, http.MethodGet, "/v2/"+path+"/blobs/"+m.Config.Digest, pull(path), "", maxConfig)
	if err != nil {
		return nil, err
	}
	if got := sum(a.body); got != m.Config.Digest || int64(len(a.body)) != m.Config.Size {
		return nil, fmt.Errorf("its configuration is %s with %d bytes, not %s with %d: %w",
			got, len(a.body), m.Config.Digest, m.Config.Size, errdefs.ErrInvalidArgument)
	}
	var cfg config
	if err := json.Unmarshal(a.body, &cfg); err != nil {
		return nil, fmt.Errorf("its configuration is not JSON: %w: %w", errdefs.ErrInvalidArgument, err)
	}
	if cfg.OS != "" && cfg.OS != "linux" || cfg.Architecture == "" || len(cfg.Architecture) > 32 {
		return nil, fmt.Errorf("it is for %.20q and %.20q, and %w: %w", cfg.OS, cfg.Architecture, ErrNothing, errdefs.ErrFailedPrecondition)
	}
	out.Architecture, out.Labels, out.Environment = cfg.Architecture, cfg.Config.Labels, cfg.Config.Env
	return out, nil
}

// Describe returns the media type and the size of a manifest or index (a digest of a repository).
func (c *Client) Describe(ctx context.Context, repository, digest string) (mediaType string, size int64, err error) {
	ref, err := parse(repository + "@" + digest)
	if err != nil {
		return "", 0, err
	}
	a, err := c.get(ctx, http.MethodGet, ref.manifest(), pull(ref.path), acceptManifests, maxManifest)
	if err != nil {
		return "", 0, fmt.Errorf("read manifest %s: %w", digest, err)
	}
	if got := sum(a.body); got != digest {
		return "", 0, fmt.Errorf("the registry sends %s for %s: %w", got, digest, errdefs.ErrInvalidArgument)
	}
	var m manifest
	if err := json.Unmarshal(a.body, &m); err != nil {
		return "", 0, fmt.Errorf("manifest %s is not JSON: %w: %w", digest, err, errdefs.ErrInvalidArgument)
	}
	if m.MediaType == "" {
		m.MediaType = a.header.Get("Content-Type")
	}
	return m.MediaType, int64(len(a.body)), nil
}
