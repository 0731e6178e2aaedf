package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
)

// Limits of lists.
const (
	pageSize        = 1000
	maxPages        = 1000
	maxRepositories = 20_000
	maxTags         = 100_000 // of one repository
)

// Tag is a tag of a repository.
type Tag struct {
	Name   string
	Digest string // of its manifest or index; "" if the list does not have it
}

// Repositories lists the names of all repositories. The error is ErrNotImplemented,
// ErrPermissionDenied or ErrUnauthenticated for a registry that does not allow this.
func (c *Client) Repositories(ctx context.Context) ([]string, error) {
	var names []string
	err := c.pages(ctx, "/v2/_catalog?n="+strconv.Itoa(pageSize), "registry:catalog:*", func(b []byte) error {
		var page struct {
			Repositories []string `json:"repositories"`
		}
		if err := json.Unmarshal(b, &page); err != nil {
			return err
		}
		for _, n := range page.Repositories {
			if checkRepository(n) == nil { // a registry must not list others
				names = append(names, n)
			}
		}
		if len(names) > maxRepositories {
			return fmt.Errorf("more than %d repositories: %w", maxRepositories, errdefs.ErrInvalidArgument)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list repositories of %s: %w", c.reg.Host, err)
	}
	return unique(names), nil
}

// Lists reports in one request whether the registry lists its repositories.
func (c *Client) Lists(ctx context.Context) error {
	_, err := c.get(ctx, http.MethodGet, "/v2/_catalog?n=1", "registry:catalog:*", "", maxListing)
	return err
}

// Tags lists the tags of a repository, by name. Harbor and the registries of Google tell the digests
// in their lists.
func (c *Client) Tags(ctx context.Context, repository string) ([]Tag, error) {
	if err := checkRepository(repository); err != nil {
		return nil, err
	}
	list := c.tags
	if c.IsHarbor() && strings.Contains(repository, "/") {
		list = c.harborTags
	}
	tags, err := list(ctx, repository)
	if err != nil {
		return nil, fmt.Errorf("list tags of %s/%s: %w", c.reg.Host, repository, err)
	}
	slices.SortFunc(tags, func(a, b Tag) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(tags, func(a, b Tag) bool { return a.Name == b.Name }), nil
}

func (c *Client) tags(ctx context.Context, repository string) ([]Tag, error) {
	var tags []Tag
	path := "/v2/" + repository + "/tags/list?n=" + strconv.Itoa(pageSize)
	err := c.pages(ctx, path, pull(repository), func(b []byte) error {
		var page struct {
			Tags     []string `json:"tags"`
			Manifest map[string]struct {
				Tag []string `json:"tag"`
			} `json:"manifest"`
		}
		if err := json.Unmarshal(b, &page); err != nil {
			return err
		}
		digests := map[string]string{}
		for d, m := range page.Manifest {
			for _, t := range m.Tag {
				if digestRule.MatchString(d) {
					digests[t] = d
				}
			}
		}
		for _, t := range page.Tags {
			if tagRule.MatchString(t) {
				tags = append(tags, Tag{t, digests[t]})
			}
		}
		if len(tags) > maxTags {
			return fmt.Errorf("more than %d tags: %w", maxTags, errdefs.ErrInvalidArgument)
		}
		return nil
	})
	return tags, err
}

// pages reads a list that continues at the Link of each answer.
func (c *Client) pages(ctx context.Context, path, scope string, read func([]byte) error) error {
	seen := map[string]bool{}
	for range maxPages {
		a, err := c.get(ctx, http.MethodGet, path, scope, "application/json", maxListing)
		if err != nil {
			return err
		}
		if err := read(a.body); err != nil {
			return fmt.Errorf("read the list: %w: %w", errdefs.ErrInvalidArgument, err)
		}
		next, err := c.next(a)
		if err != nil || next == "" {
			return err
		}
		if seen[next] {
			return fmt.Errorf("the list repeats a page: %w", errdefs.ErrInvalidArgument)
		}
		seen[next], path = true, next
	}
	return fmt.Errorf("the list has more than %d pages: %w", maxPages, errdefs.ErrInvalidArgument)
}

// next returns the path of the next page, which must be at the registry itself.
func (c *Client) next(a *answer) (string, error) {
	for _, link := range strings.Split(a.header.Get("Link"), ",") {
		target, rest, ok := strings.Cut(strings.TrimSpace(link), ">")
		if !ok || !strings.HasPrefix(target, "<") || !strings.Contains(rest, "next") {
			continue
		}
		u, err := a.url.Parse(target[1:])
		if err != nil || !c.home(u) {
			return "", fmt.Errorf("the list continues at another host: %w", errdefs.ErrInvalidArgument)
		}
		return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String(), nil
	}
	return "", nil
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
