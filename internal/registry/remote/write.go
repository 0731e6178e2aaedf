package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

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
			method: http.MethodPut, path: reference{ref.path, tag}.manifest(), scope: push(ref.path),
			header: http.Header{"Content-Type": {a.header.Get("Content-Type")}}, body: a.body,
		}, maxToken)
	}
	if err != nil {
		return fmt.Errorf("tag image %s as %s: %w", image, tag, err)
	}
	return nil
}

// PutBlob stores a blob in a repository, and returns its digest.
func (c *Client) PutBlob(ctx context.Context, repository string, body []byte) (digest string, err error) {
	digest = sum(body)
	_, err = c.do(ctx, request{
		method: http.MethodPost, path: "/v2/" + repository + "/blobs/uploads/?digest=" + digest, scope: push(repository),
		header: http.Header{"Content-Type": {"application/octet-stream"}}, body: body,
	}, maxToken)
	if err != nil {
		return "", fmt.Errorf("store a blob in %s: %w", repository, err)
	}
	return digest, nil
}

// BlobSize returns the size of a blob of a repository, and NotFound without one.
func (c *Client) BlobSize(ctx context.Context, repository, digest string) (int64, error) {
	if !digestRule.MatchString(digest) {
		return 0, fmt.Errorf("digest %.80q is invalid: %w", digest, errdefs.ErrInvalidArgument)
	}
	a, err := c.get(ctx, http.MethodHead, "/v2/"+repository+"/blobs/"+digest, pull(repository), "", maxToken)
	if err != nil {
		return 0, fmt.Errorf("look for blob %s of %s: %w", digest, repository, err)
	}
	return strconv.ParseInt(a.header.Get("Content-Length"), 10, 64)
}

// PutManifest stores a manifest without a tag, and returns its digest.
func (c *Client) PutManifest(ctx context.Context, repository, mediaType string, body []byte) (digest string, err error) {
	digest = sum(body)
	_, err = c.do(ctx, request{
		method: http.MethodPut, path: reference{repository, digest}.manifest(), scope: push(repository),
		header: http.Header{"Content-Type": {mediaType}}, body: body,
	}, maxToken)
	if err != nil {
		return "", fmt.Errorf("store a manifest in %s: %w", repository, err)
	}
	return digest, nil
}

func push(repository string) string { return "repository:" + repository + ":pull,push" }

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

// Copy adds an image (repository@digest) of one architecture to another repository of the registry, without a tag.
// from reads the repository of the image, and c can mount its layers.
func (c *Client) Copy(ctx context.Context, from *Client, image, repository string) error {
	ref, err := parse(image)
	if err != nil {
		return err
	}
	if _, err := parse(repository + "@" + ref.version); err != nil {
		return err
	}
	a, err := from.get(ctx, http.MethodGet, ref.manifest(), pull(ref.path), acceptManifests, maxManifest)
	var m manifest
	switch {
	case err != nil:
	case sum(a.body) != ref.version:
		err = fmt.Errorf("the registry sends %s: %w", sum(a.body), errdefs.ErrInvalidArgument)
	default:
		err = json.Unmarshal(a.body, &m)
	}
	if err != nil {
		return fmt.Errorf("copy image %s: %w", image, err)
	}
	for _, d := range append([]descriptor{m.Config}, m.Layers...) {
		if err := c.mount(ctx, ref.path, repository, d.Digest); err != nil {
			return fmt.Errorf("copy image %s: %w", image, err)
		}
	}
	_, err = c.do(ctx, request{
		method: http.MethodPut, path: reference{repository, ref.version}.manifest(), scope: "repository:" + repository + ":pull,push",
		header: http.Header{"Content-Type": {a.header.Get("Content-Type")}}, body: a.body,
	}, maxToken)
	if err != nil {
		return fmt.Errorf("copy image %s to %s: %w", image, repository, err)
	}
	return nil
}

// mount makes a blob of a repository one of another repository.
func (c *Client) mount(ctx context.Context, from, to, digest string) error {
	if !digestRule.MatchString(digest) {
		return fmt.Errorf("digest %.80q: %w", digest, errdefs.ErrInvalidArgument)
	}
	a, err := c.do(ctx, request{
		method: http.MethodPost, path: "/v2/" + to + "/blobs/uploads/?mount=" + digest + "&from=" + url.QueryEscape(from),
		scope: "repository:" + to + ":pull,push",
	}, maxToken)
	if err != nil {
		return err
	}
	if a.header.Get(digestHeader) != digest {
		return fmt.Errorf("the registry does not have %s in %s: %w", digest, from, errdefs.ErrNotFound)
	}
	return nil
}

// Untag removes a tag (repository:tag), and leaves the image that has it. A missing tag is not an error.
func (c *Client) Untag(ctx context.Context, image string) error {
	ref, err := parse(image)
	if err != nil {
		return err
	}
	if digestRule.MatchString(ref.version) {
		return fmt.Errorf("%s is not a tag: %w", image, errdefs.ErrInvalidArgument)
	}
	_, err = c.get(ctx, http.MethodDelete, ref.manifest(), "repository:"+ref.path+":delete", "", maxToken)
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove tag %s: %w", image, err)
	}
	return nil
}
