package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/containerd/errdefs"
)

// Contents returns the digest of the manifest of a tag, and the blobs that it refers to.
func (c *Client) Contents(ctx context.Context, repository, tag string) (digest string, blobs []Descriptor, err error) {
	ref, err := parse(repository + ":" + tag)
	if err != nil {
		return "", nil, err
	}
	a, err := c.get(ctx, http.MethodGet, ref.manifest(), pull(ref.path), acceptManifests, maxManifest)
	if err != nil {
		return "", nil, fmt.Errorf("read manifest %s of %s: %w", tag, repository, err)
	}
	var m struct {
		Config *Descriptor  `json:"config"`
		Layers []Descriptor `json:"layers"`
	}
	if err := json.Unmarshal(a.body, &m); err != nil {
		return "", nil, fmt.Errorf("manifest %s of %s is not JSON: %w: %w", tag, repository, errdefs.ErrInvalidArgument, err)
	}
	if m.Config != nil {
		m.Layers = append(m.Layers, *m.Config)
	}
	for _, d := range m.Layers {
		if err := d.check(); err != nil {
			return "", nil, err
		}
	}
	return sum(a.body), m.Layers, nil
}
