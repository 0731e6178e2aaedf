package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/containerd/errdefs"
)

// harborService is the service in the challenge of a Harbor registry.
const harborService = "harbor-registry"

// harborPage is the largest page of Harbor's API.
const harborPage = 100

// IsHarbor reports whether the registry has said that it is Harbor; false before the first request.
func (c *Client) IsHarbor() bool {
	c.auth.mu.Lock()
	defer c.auth.mu.Unlock()
	return c.auth.last.service == harborService
}

// Project lists the repositories of a project of Harbor.
func (c *Client) Project(ctx context.Context, project string) ([]string, error) {
	if err := checkRepository(project); err != nil || strings.Contains(project, "/") {
		return nil, fmt.Errorf("%.80q is not the name of a project: %w", project, errdefs.ErrInvalidArgument)
	}
	var names []string
	err := c.harbor(ctx, "/api/v2.0/projects/"+project+"/repositories?", func(b []byte) (int, error) {
		var page []struct {
			Name string `json:"name"`
		}
		err := json.Unmarshal(b, &page)
		for _, r := range page {
			if checkRepository(r.Name) == nil && strings.HasPrefix(r.Name, project+"/") {
				names = append(names, r.Name)
			}
		}
		return len(page), err
	})
	if err != nil {
		return nil, fmt.Errorf("list repositories of project %s: %w", project, err)
	}
	return unique(names), nil
}

// harborTags lists tags with their digests, a hundred artifacts with one request.
func (c *Client) harborTags(ctx context.Context, repository string) ([]Tag, error) {
	project, name, _ := strings.Cut(repository, "/")
	// Harbor decodes the name twice.
	path := "/api/v2.0/projects/" + project + "/repositories/" + escape(escape(name)) + "/artifacts?with_tag=true&"
	var tags []Tag
	err := c.harbor(ctx, path, func(b []byte) (int, error) {
		var page []struct {
			Digest string `json:"digest"`
			Tags   []struct {
				Name string `json:"name"`
			} `json:"tags"`
		}
		err := json.Unmarshal(b, &page)
		for _, a := range page {
			for _, t := range a.Tags {
				if tagRule.MatchString(t.Name) && digestRule.MatchString(a.Digest) {
					tags = append(tags, Tag{t.Name, a.Digest})
				}
			}
		}
		if len(tags) > maxTags {
			err = fmt.Errorf("more than %d tags", maxTags)
		}
		return len(page), err
	})
	return tags, err
}

// harbor reads the pages of a list of Harbor's API, which takes the user name and the password
// itself.
func (c *Client) harbor(ctx context.Context, path string, read func([]byte) (int, error)) error {
	key, err := "", error(nil)
	if !c.Anonymous() {
		if key, err = c.basic(ctx); err != nil {
			return err
		}
	}
	for page := 1; page <= maxPages; page++ {
		at, err := c.base.Parse(fmt.Sprintf("%spage=%d&page_size=%d", path, page, harborPage))
		if err != nil {
			return fmt.Errorf("path: %w: %w", errdefs.ErrInvalidArgument, err)
		}
		resp, err := c.follow(ctx, request{method: http.MethodGet, header: http.Header{"Accept": {"application/json"}}}, at, key)
		if err != nil {
			return err
		}
		b, err := []byte(nil), c.refusal(resp)
		if err == nil {
			b, err = readAll(resp, maxListing)
		}
		drain(resp)
		if err != nil {
			return err
		}
		n, err := read(b)
		if err != nil {
			return fmt.Errorf("read the list: %w: %w", errdefs.ErrInvalidArgument, err)
		}
		if n < harborPage {
			return nil
		}
	}
	return fmt.Errorf("the list has more than %d pages: %w", maxPages, errdefs.ErrInvalidArgument)
}
