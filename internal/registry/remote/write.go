package remote

import (
	"context"
	"fmt"
	"net/http"

	"github.com/containerd/errdefs"
)

// Tag gives an image (repository@digest) a tag. The image has one architecture.
func (c *Client) Tag(ctx context.Context, image, tag string) error {
	ref, err := parse(image)
	if err != nil {
		return err
	}
	if !tagRule.MatchString(tag) {
		return fmt.Errorf("tag %.80q is invalid: %w", tag, errdefs.ErrInvalidArgument)
	}
	a, err := c.get(ctx, http.MethodGet, ref.manifest(), pull(ref.path), acceptManifests, maxManifest)
	if err == nil && sum(a.body) != ref.version {
		err = fmt.Errorf("the registry sends %s: %w", sum(a.body), errdefs.ErrInvalidArgument)
	}
	if err == nil {
		_, err = c.do(ctx, request{
			method: http.MethodPut, path: reference{ref.path, tag}.manifest(), scope: "repository:" + ref.path + ":pull,push",
			header: http.Header{"Content-Type": {a.header.Get("Content-Type")}}, body: a.body,
		}, maxToken)
	}
	if err != nil {
		return fmt.Errorf("tag image %s as %s: %w", image, tag, err)
	}
	return nil
}

// Delete removes an image (repository@digest) and its tags. Its layers stay until the registry
// collects garbage. A missing image is not an error.
func (c *Client) Delete(ctx context.Context, image string) error {
	ref, err := parse(image)
	if err != nil {
		return err
	}
	_, err = c.get(ctx, http.MethodDelete, ref.manifest(), "repository:"+ref.path+":delete", "", maxToken)
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("delete image %s: %w", image, err)
	}
	return nil
}
