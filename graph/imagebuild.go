package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/build"
)

func (r queryResolver) ImageBuilds(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.ImageBuildOrder, where *ent.ImageBuildWhereInput) (*ent.ImageBuildConnection, error) {
	return r.Client.ImageBuild.Query().Paginate(ctx, after, first, before, last, ent.WithImageBuildOrder(orderBy), ent.WithImageBuildFilter(where.Filter))
}

func (r mutationResolver) BuildImage(ctx context.Context, input build.BuildImageInput) (*build.ImageBuildPayload, error) {
	return r.Builds.BuildImage(ctx, input)
}

func (r mutationResolver) CancelImageBuild(ctx context.Context, input build.CancelImageBuildInput) (*build.ImageBuildPayload, error) {
	return r.Builds.CancelImageBuild(ctx, input)
}

func (r queryResolver) BuildCaches(ctx context.Context) ([]*build.BuildCache, error) {
	return r.Builds.Caches(ctx)
}

func (r mutationResolver) DeleteBuildCache(ctx context.Context, input build.DeleteBuildCacheInput) (*build.DeleteBuildCachePayload, error) {
	return r.Builds.DeleteBuildCache(ctx, input)
}
