package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/containerd/errdefs"
)

// Limits of what is attached to one image.
const (
	maxReferrers = 100
	maxParts     = 50 // layers of one attachment
)

// Descriptor is a reference to content that is attached to an image, or a part of it.
type Descriptor struct {
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	Annotations  map[string]string `json:"annotations"`
}

func (d Descriptor) check() error {
	if !digestRule.MatchString(d.Digest) || d.Size < 0 || d.Size > math.MaxInt64/2 {
		return fmt.Errorf("content with the digest %.80q and %d bytes: %w", d.Digest, d.Size, errdefs.ErrInvalidArgument)
	}
	return nil
}

// Artifact is the manifest of an attachment.
type Artifact struct {
	Digest      string            `json:"-"`
	Size        int64             `json:"-"`
	Type        string            `json:"artifactType"`
	Layers      []Descriptor      `json:"layers"`
	Annotations map[string]string `json:"annotations"`
	Config      struct {
		MediaType string `json:"mediaType"`
	} `json:"config"`
}

// attachedTags are the ends of tags by which cosign attaches signatures, attestations and SBOMs.
var attachedTags = []string{".sig", ".att", ".sbom"}

// Referrers returns what is attached to a digest of a repository: what the referrers API lists, or the tag
// that stands for it at registries without that API, and the tags of cosign. Contents are not read.
func (c *Client) Referrers(ctx context.Context, repository, digest string) ([]Descriptor, error) {
	if err := checkRepository(repository); err != nil {
		return nil, err
	}
	if !digestRule.MatchString(digest) {
		return nil, fmt.Errorf("digest %.80q: %w", digest, errdefs.ErrInvalidArgument)
	}
	list, err := c.referrers(ctx, repository, "/v2/"+repository+"/referrers/"+digest)
	tag := strings.Replace(digest, ":", "-", 1)
	if errdefs.IsNotFound(err) || errdefs.IsNotImplemented(err) {
		list, err = c.referrers(ctx, repository, reference{repository, tag}.manifest())
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return nil, fmt.Errorf("list what is attached to %s@%s: %w", repository, digest, err)
	}
	for _, end := range attachedTags {
		a, err := c.get(ctx, http.MethodHead, reference{repository, tag + end}.manifest(), pull(repository), acceptManifests, 0)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for tag %s%s: %w", tag, end, err)
		}
		d := Descriptor{MediaType: ociManifest, ArtifactType: end, Digest: a.header.Get(digestHeader)}
		if d.check() != nil { // the registry does not tell it
			one, err := c.artifact(ctx, reference{repository, tag + end})
			if err != nil {
				return nil, err
			}
			d.Digest = one.Digest
		}
		list = append(list, d)
	}
	return list, nil
}

func (c *Client) referrers(ctx context.Context, repository, path string) ([]Descriptor, error) {
	a, err := c.get(ctx, http.MethodGet, path, pull(repository), ociIndex, maxManifest)
	if err != nil {
		return nil, err
	}
	var index struct {
		Manifests []Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(a.body, &index); err != nil {
		return nil, fmt.Errorf("the list of attachments is not JSON: %w: %w", errdefs.ErrInvalidArgument, err)
	}
	if len(index.Manifests) > maxReferrers {
		return nil, fmt.Errorf("it has %d attachments, more than %d: %w", len(index.Manifests), maxReferrers, errdefs.ErrInvalidArgument)
	}
	for _, d := range index.Manifests {
		if err := d.check(); err != nil {
			return nil, err
		}
	}
	return index.Manifests, nil
}

// Artifact reads the manifest of an attachment.
func (c *Client) Artifact(ctx context.Context, repository, digest string) (*Artifact, error) {
	ref, err := parse(repository + "@" + digest)
	if err != nil {
		return nil, err
	}
	return c.artifact(ctx, ref)
}

func (c *Client) artifact(ctx context.Context, ref reference) (*Artifact, error) {
	a, err := c.get(ctx, http.MethodGet, ref.manifest(), pull(ref.path), acceptManifests, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("read attachment %s: %w", ref.version, err)
	}
	out := &Artifact{Digest: sum(a.body), Size: int64(len(a.body))}
	if digestRule.MatchString(ref.version) && ref.version != out.Digest {
		return nil, fmt.Errorf("the registry sends %s for %s: %w", out.Digest, ref.version, errdefs.ErrInvalidArgument)
	}
	if err := json.Unmarshal(a.body, out); err != nil {
		return nil, fmt.Errorf("attachment %s is not JSON: %w: %w", ref.version, errdefs.ErrInvalidArgument, err)
	}
	if out.Type == "" {
		out.Type = out.Config.MediaType
	}
	if len(out.Layers) > maxParts {
		return nil, fmt.Errorf("attachment %s has %d parts, more than %d: %w", ref.version, len(out.Layers), maxParts, errdefs.ErrInvalidArgument)
	}
	for _, d := range out.Layers {
		if err := d.check(); err != nil {
			return nil, err
		}
		out.Size += d.Size
	}
	return out, nil
}

// Blob reads and verifies content of at most limit bytes.
func (c *Client) Blob(ctx context.Context, repository string, d Descriptor, limit int64) ([]byte, error) {
	if err := checkRepository(repository); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	if d.Size > limit {
		return nil, fmt.Errorf("content %s has %d bytes, more than %d: %w", d.Digest, d.Size, limit, errdefs.ErrInvalidArgument)
	}
	a, err := c.get(ctx, http.MethodGet, "/v2/"+repository+"/blobs/"+d.Digest, pull(repository), "", limit)
	if err != nil {
		return nil, fmt.Errorf("read content %s: %w", d.Digest, err)
	}
	if got := sum(a.body); got != d.Digest {
		return nil, fmt.Errorf("the registry sends %s for %s: %w", got, d.Digest, errdefs.ErrInvalidArgument)
	}
	return a.body, nil
}
