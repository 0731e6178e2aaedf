package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/recovery"
)

// Cluster returns the leader. If etcd does not answer, the leader loses its role within a few
// seconds.
func (r queryResolver) Cluster(ctx context.Context) (*model.Cluster, error) {
	l, err := r.Leadership.Current(ctx)
	if err != nil {
		r.Logger.WarnContext(ctx, "find the leader", "error", err)
	}
	mode, err := r.Recovery.Current(ctx)
	if err != nil {
		return nil, err
	}
	return &model.Cluster{Led: l != nil, Leader: l, Recovery: mode}, nil
}

// Managers is empty while etcd does not answer, because only etcd knows which managers are
// alive.
func (r clusterResolver) Managers(ctx context.Context, _ *model.Cluster) ([]*leader.ClusterManager, error) {
	list, err := r.Leadership.Managers(ctx)
	if err != nil {
		r.Logger.WarnContext(ctx, "look which managers are alive", "error", err)
		return []*leader.ClusterManager{}, nil
	}
	return list, nil
}

func (r clusterResolver) StorageProxies(ctx context.Context, _ *model.Cluster) ([]*ent.StorageProxy, error) {
	return r.Client.StorageProxy.Query().Order(storageproxy.ByName()).All(ctx)
}

func (r clusterResolver) EvictionsStopped(ctx context.Context, _ *model.Cluster) ([]*model.EvictionsStopped, error) {
	list, err := r.Agents.Disruptions(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]*model.EvictionsStopped, len(list))
	for i, d := range list {
		out[i] = &model.EvictionsStopped{ResourceGroup: d.ResourceGroup, Unreachable: d.Unreachable, Agents: d.Agents}
	}
	return out, nil
}

func (r mutationResolver) SetRecovery(ctx context.Context, input recovery.SetRecoveryInput) (*recovery.Payload, error) {
	return r.Resolver.Recovery.SetRecovery(ctx, input)
}
