package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/imagebuild"
	entproject "github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/permit"
)

// Limits of the caches in the registry.
const (
	// cacheLife is how long the results of a build stay after the last build with the same description.
	cacheLife = 30 * 24 * time.Hour
	// maxCache limits the cache of a project in bytes, if the limit of its images leaves no less.
	maxCache = 50 << 30
	// sweepEvery is the time between two sweeps of the caches.
	sweepEvery = time.Hour
	// maxListed limits the projects of a list.
	maxListed = 100
)

// BuildCache is the cache of a project's builds in the registry.
type BuildCache struct {
	Project *ent.Project
	Bytes   int64
	Results int
	UsedAt  *time.Time
}

// Caches returns the caches of the projects whose builds the viewer can see.
func (s *Service) Caches(ctx context.Context) ([]*BuildCache, error) {
	var of []uuid.UUID
	err := s.Client.ImageBuild.Query().Where(imagebuild.CacheTagNEQ("")).Limit(maxListed).Unique(true).Select(imagebuild.FieldProjectID).Scan(ctx, &of)
	if err != nil {
		return nil, fmt.Errorf("read builds: %w", err)
	}
	projects, err := s.Client.Project.Query().Where(entproject.IDIn(of...)).Order(entproject.ByName()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read projects: %w", err)
	}
	out := []*BuildCache{}
	for _, p := range projects {
		list, err := s.Images.Cache(ctx, p.ID)
		if err != nil {
			return nil, err
		}
		used, err := s.used(viewer.SystemContext(ctx), p.ID)
		if err != nil {
			return nil, err
		}
		c := &BuildCache{Project: p, Bytes: bytesOf(list), Results: len(list)}
		for _, one := range list {
			if at, ok := used[one.Tag]; ok && (c.UsedAt == nil || at.After(*c.UsedAt)) {
				c.UsedAt = &at
			}
		}
		if len(list) > 0 {
			out = append(out, c)
		}
	}
	return out, nil
}

// bytesOf returns the bytes of results. A blob that several have counts once.
func bytesOf(list []image.CachedResult) (n int64) {
	seen := map[string]bool{}
	for _, one := range list {
		for digest, size := range one.Blobs {
			if !seen[digest] {
				seen[digest], n = true, n+size
			}
		}
	}
	return n
}

// used returns when each result of a project was last built or used. Those of builds that have not ended are in use
// now.
func (s *Service) used(ctx context.Context, project uuid.UUID) (map[string]time.Time, error) {
	list, err := s.Client.ImageBuild.Query().Where(imagebuild.ProjectID(project), imagebuild.Or(imagebuild.EndedAtIsNil(), imagebuild.CacheTagNEQ(""))).
		Order(imagebuild.ByEndedAt(sql.OrderDesc())).Select(imagebuild.FieldDigest, imagebuild.FieldCacheTag, imagebuild.FieldEndedAt).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read builds of project %s: %w", project, err)
	}
	out := map[string]time.Time{}
	for _, b := range list {
		tag, at := cacheTag(b), clock.Now()
		if b.EndedAt != nil {
			at = *b.EndedAt
		}
		if at.After(out[tag]) {
			out[tag] = at
		}
	}
	return out, nil
}

// DeleteBuildCacheInput names a project.
type DeleteBuildCacheInput struct{ Project uuid.UUID }

// DeleteBuildCachePayload is what was removed.
type DeleteBuildCachePayload struct {
	Results int
	Bytes   int64
}

// DeleteBuildCache removes the results of a project's builds from the registry, so that the next builds run all steps
// that no machine has.
func (s *Service) DeleteBuildCache(ctx context.Context, in DeleteBuildCacheInput) (*DeleteBuildCachePayload, error) {
	p, err := s.Client.Project.Get(ctx, in.Project)
	if err != nil {
		return nil, permit.Missing(err, "project", "project")
	}
	if err := permit.To(ctx, access.Update, p); err != nil {
		return nil, err
	}
	list, err := s.Images.Cache(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	return &DeleteBuildCachePayload{Results: len(list), Bytes: bytesOf(list)}, s.drop(viewer.SystemContext(ctx), p.ID, list)
}

// drop removes results from a cache, and from the builds that could be imported.
func (s *Service) drop(ctx context.Context, project uuid.UUID, list []image.CachedResult) error {
	if len(list) == 0 {
		return nil
	}
	tags := make([]string, len(list))
	for i, one := range list {
		tags[i] = one.Tag
	}
	err := s.Client.ImageBuild.Update().Where(imagebuild.ProjectID(project), imagebuild.CacheTagIn(tags...)).SetCacheTag("").Exec(ctx)
	if err != nil {
		return fmt.Errorf("forget cached results: %w", err)
	}
	return s.Images.DropCached(ctx, project, list)
}

// sweepCaches removes old results, and then the oldest ones of projects above their limit.
func (s *Service) sweepCaches(ctx context.Context) error {
	projects, err := s.Images.CachedProjects(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, p := range projects {
		failed = errors.Join(failed, s.sweepCache(ctx, p))
	}
	return failed
}

func (s *Service) sweepCache(ctx context.Context, project uuid.UUID) error {
	list, err := s.Images.Cache(ctx, project)
	if err != nil {
		return err
	}
	used, err := s.used(ctx, project)
	if err != nil {
		return err
	}
	limit := int64(maxCache)
	spare, err := s.Commits.SpareOfProject(ctx, project)
	if err != nil {
		return err
	}
	if spare != nil {
		limit = min(limit, *spare)
	}
	old := expired(list, used, clock.Now().Add(-cacheLife), limit)
	if len(old) > 0 {
		s.Logger.InfoContext(ctx, "remove cached results of builds", "project", project, "results", len(old))
	}
	return s.drop(ctx, project, old)
}

// expired returns the results that were not used since a time, and the oldest of the others until the rest has at most
// limit bytes.
func expired(list []image.CachedResult, used map[string]time.Time, since time.Time, limit int64) (old []image.CachedResult) {
	left := slices.Clone(list)
	slices.SortFunc(left, func(a, b image.CachedResult) int { return used[a.Tag].Compare(used[b.Tag]) })
	for len(left) > 0 && (used[left[0].Tag].Before(since) || bytesOf(left) > limit) {
		old, left = append(old, left[0]), left[1:]
	}
	return old
}
