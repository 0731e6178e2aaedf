package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/registry/remote"
)

// CachedResult is a tag of the cache of a project's builds: the results of the steps of one build.
type CachedResult struct {
	Tag    string
	Digest string
	Blobs  map[string]int64 // sizes by digest; builds share blobs
}

// CachedProjects returns the projects that have a cache in the registry for images of sessions.
func (s *Service) CachedProjects(ctx context.Context) (projects []uuid.UUID, err error) {
	r, from, err := s.openOwn(ctx, s.reach)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	names, err := from.Repositories(ctx)
	if err != nil {
		return nil, explain(r, "the caches of builds", err)
	}
	for _, n := range names {
		if hex, ok := strings.CutPrefix(n, cachePath); ok {
			if id, err := uuid.Parse(hex); err == nil {
				projects = append(projects, id)
			}
		}
	}
	return projects, nil
}

// Cache returns the cache of a project's builds.
func (s *Service) Cache(ctx context.Context, project uuid.UUID) (list []CachedResult, err error) {
	r, from, err := s.openOwn(ctx, s.reach)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	repository := CacheRepository(project)
	tags, err := from.Tags(ctx, repository)
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(r, "the cache of a project", err)
	}
	for _, t := range tags {
		one, err := cachedResult(ctx, from, repository, t.Name)
		if errdefs.IsNotFound(err) {
			continue // a sweep or another call has removed it
		}
		if err != nil {
			return nil, explain(r, "the cache of a project", err)
		}
		list = append(list, one)
	}
	return list, nil
}

func cachedResult(ctx context.Context, from *remote.Client, repository, tag string) (out CachedResult, err error) {
	digest, blobs, err := from.Contents(ctx, repository, tag)
	if err != nil {
		return out, err
	}
	out = CachedResult{Tag: tag, Digest: digest, Blobs: map[string]int64{}}
	for _, b := range blobs {
		out.Blobs[b.Digest] = b.Size
	}
	return out, nil
}

// DropCached removes results from the cache of a project. The next sweep of the registry frees their bytes.
func (s *Service) DropCached(ctx context.Context, project uuid.UUID, list []CachedResult) error {
	if len(list) == 0 {
		return nil
	}
	repository := CacheRepository(project)
	_, to, err := s.openOwn(ctx, func(r *ent.Registry) (*remote.Client, error) { return s.writer(r, repository) })
	if err != nil {
		return err
	}
	defer to.Close()
	for _, one := range list {
		if err := to.Delete(ctx, repository+"@"+one.Digest); err != nil {
			return fmt.Errorf("remove a result from the cache of project %s: %w", project, err)
		}
	}
	return nil
}
