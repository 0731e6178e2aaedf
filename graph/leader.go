package graph

import (
	"context"

	"github.com/berthhq/berth/graph/model"
)

// Cluster returns who leads. While etcd does not answer nobody can lead for longer than
// a few seconds.
func (r queryResolver) Cluster(ctx context.Context) (*model.Cluster, error) {
	l, err := r.Leadership.Current(ctx)
	if err != nil {
		r.Logger.WarnContext(ctx, "look who leads", "error", err)
	}
	return &model.Cluster{Led: l != nil, Leader: l}, nil
}
