package build

import (
	"context"
	"fmt"
	"slices"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/imagebuild"
	"github.com/berthhq/berth/manager/image"
)

// The caches in the registry. A project has one repository, with a tag for each of its last builds.
const (
	tagLength = 40 // characters of the digest of a build
	imports   = 4  // tags that a build reads
)

func cacheTag(b *ent.ImageBuild) string { return b.Digest[:tagLength] }

// cache adds the cache of the project: the results of the same build, of the last build of the same image, and of
// the last builds of the project.
func (r runner) cache(ctx context.Context, b *ent.ImageBuild, reg *ent.Registry, out *agentpb.BuildImageRequest) error {
	repository := image.CacheRepository(b.ProjectID)
	token, _, err := r.Images.PushToken(repository, b.Base, nil)
	if err != nil {
		return err
	}
	password, err := r.Images.Password(reg)
	if err != nil {
		return err
	}
	out.CacheRepository, out.CachePassword, out.CacheExport = reg.Host+"/"+repository, token, cacheTag(b)
	out.CacheReader, out.CacheSecret = reg.Username, password
	if out.NoCache {
		return nil
	}
	past := r.Client.ImageBuild.Query().Where(imagebuild.ProjectID(b.ProjectID), imagebuild.CacheTagNEQ(""), imagebuild.EndedAtNotNil()).
		Order(imagebuild.ByEndedAt(sql.OrderDesc()))
	for _, q := range []*ent.ImageBuildQuery{
		past.Clone().Where(imagebuild.Digest(b.Digest)).Limit(1),
		past.Clone().Where(imagebuild.Repository(b.Repository)).Limit(1),
		past.Limit(imports),
	} {
		tags, err := q.Select(imagebuild.FieldCacheTag).Strings(ctx)
		if err != nil {
			return fmt.Errorf("look for earlier builds: %w", err)
		}
		for _, tag := range tags {
			if len(out.CacheImport) < imports && !slices.Contains(out.CacheImport, tag) {
				out.CacheImport = append(out.CacheImport, tag)
			}
		}
	}
	return nil
}
