package graph

import (
	"context"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/modelapi"
	"github.com/berthhq/berth/manager/deployment"
	"github.com/berthhq/berth/manager/deployment/key"
	deploymentload "github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/deployment/variant"
	"github.com/berthhq/berth/manager/session"
)

type (
	deploymentResolver         struct{ *Resolver }
	deploymentRevisionResolver struct{ *Resolver }
	deploymentKeyResolver      struct{ *Resolver }
)

func (r queryResolver) Deployments(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.DeploymentOrder, where *ent.DeploymentWhereInput) (*ent.DeploymentConnection, error) {
	return r.Client.Deployment.Query().Paginate(ctx, after, first, before, last, ent.WithDeploymentOrder(orderBy), ent.WithDeploymentFilter(where.Filter))
}

func (r queryResolver) DeploymentKeys(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.DeploymentKeyOrder, where *ent.DeploymentKeyWhereInput) (*ent.DeploymentKeyConnection, error) {
	return r.Client.DeploymentKey.Query().Paginate(ctx, after, first, before, last, ent.WithDeploymentKeyOrder(orderBy), ent.WithDeploymentKeyFilter(where.Filter))
}

func (queryResolver) ModelVariants(context.Context) ([]*variant.Variant, error) {
	list, err := variant.All()
	return pointers(list), err
}

func (r queryResolver) ModelsURL(context.Context) (*string, error) {
	if u := r.Apps.ModelsURL(); u != "" {
		return &u, nil
	}
	return nil, nil
}

func (deploymentResolver) Strategy(_ context.Context, d *ent.Deployment) (*deployment.Strategy, error) {
	return deployment.StrategyOf(d)
}

func (deploymentResolver) Scaling(_ context.Context, d *ent.Deployment) (*deployment.Scaling, error) {
	return deployment.ScalingOf(d)
}

func (deploymentResolver) Traffic(_ context.Context, d *ent.Deployment) ([]*deployment.Traffic, error) {
	return pointers(deployment.TrafficOf(d)), nil
}

func (deploymentResolver) Permissions(ctx context.Context, d *ent.Deployment) ([]access.Operation, error) {
	return may(ctx, d)
}

func (deploymentResolver) Load(ctx context.Context, d *ent.Deployment) (*model.DeploymentLoad, error) {
	t, err := loaders(ctx).loads.Load(ctx, d.ID)
	if err != nil || t == nil {
		return nil, err
	}
	w := t.All(0)
	out := &model.DeploymentLoad{
		InFlight: t.InFlight, Waiting: t.Waiting, RequestsPerSecond: w.Rate(w.Requests), ErrorRate: deploymentload.Share(w.Errors, w.Requests),
		PromptTokensPerSecond: w.Rate(w.Prompt), CompletionTokensPerSecond: w.Rate(w.Completion), CachedShare: deploymentload.Share(w.Cached, w.Prompt),
		FirstByteP50: milliseconds(w.FirstByte.Quantile(0.5)), FirstByteP95: milliseconds(w.FirstByte.Quantile(0.95)),
		PerTokenP50: milliseconds(w.PerToken.Quantile(0.5)), PerTokenP95: milliseconds(w.PerToken.Quantile(0.95)),
		Replicas: []*model.DeploymentReplicaLoad{},
	}
	for _, id := range t.IDs() {
		one := t.Replicas[id]
		out.Replicas = append(out.Replicas, &model.DeploymentReplicaLoad{
			Replica: id, InFlight: one.InFlight, RequestsPerSecond: one.Window.Rate(one.Window.Requests),
			ErrorRate: deploymentload.Share(one.Window.Errors, one.Window.Requests), Ejected: one.Ejected,
		})
	}
	return out, nil
}

func milliseconds(d time.Duration, known bool) *float64 {
	if !known {
		return nil
	}
	ms := float64(d) / float64(time.Millisecond)
	return &ms
}

// loadLoads reads what the gateways measure.
func (r *Resolver) loadLoads(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*deploymentload.Total, error) {
	all, err := r.Deployments.Loads.Read(ctx, ids...)
	out := make(map[uuid.UUID]*deploymentload.Total, len(all))
	for id, t := range all {
		out[id] = &t
	}
	return out, err
}

func (r deploymentRevisionResolver) Request(ctx context.Context, x *ent.DeploymentRevision) (*session.CreateSessionInput, error) {
	return loaders(ctx).revisionRequests.Load(ctx, x.ID)
}

func (deploymentRevisionResolver) Engine(_ context.Context, x *ent.DeploymentRevision) (*deployment.Engine, error) {
	return deployment.EngineOf(x)
}

func (deploymentKeyResolver) Apis(_ context.Context, k *ent.DeploymentKey) ([]modelapi.API, error) {
	return key.APIs(k), nil
}

// DeploymentChanged sends the current state if a deployment is given, then each change of visible ones.
func (r subscriptionResolver) DeploymentChanged(ctx context.Context, id *uuid.UUID) (<-chan *ent.Deployment, error) {
	find := func(ctx context.Context, where ...predicate.Deployment) ([]*ent.Deployment, error) {
		q, err := r.Client.Deployment.Query().Where(where...).Order(entdeployment.ByCreatedAt(sql.OrderDesc())).Limit(maxFeed).
			CollectFields(ctx, "Deployment", "Node")
		if err != nil {
			return nil, err
		}
		return q.All(ctx)
	}
	f := feed[*ent.Deployment]{
		topic: event.Deployment, id: id,
		first: func(context.Context) ([]*ent.Deployment, error) { return nil, nil },
		read: func(ctx context.Context, ids []uuid.UUID) ([]*ent.Deployment, error) {
			return find(ctx, entdeployment.IDIn(ids...))
		},
		missed: func(ctx context.Context) ([]*ent.Deployment, error) {
			return find(ctx, entdeployment.Or(entdeployment.EndedAtIsNil(), entdeployment.EndedAtGT(now().Add(-missedFor))))
		},
	}
	if id != nil {
		f.missed = nil
		f.first = func(ctx context.Context) ([]*ent.Deployment, error) {
			return named(ctx, find, "deployment", entdeployment.ID(*id))
		}
	}
	return follow(ctx, r.Resolver, f)
}

func (r mutationResolver) CreateDeployment(ctx context.Context, input deployment.CreateDeploymentInput) (*deployment.DeploymentPayload, error) {
	return r.Deployments.CreateDeployment(ctx, input)
}

func (r mutationResolver) UpdateDeployment(ctx context.Context, input deployment.UpdateDeploymentInput) (*deployment.DeploymentPayload, error) {
	return r.Deployments.UpdateDeployment(ctx, input)
}

func (r mutationResolver) AddDeploymentRevision(ctx context.Context, input deployment.AddDeploymentRevisionInput) (*deployment.DeploymentPayload, error) {
	return r.Deployments.AddDeploymentRevision(ctx, input)
}

func (r mutationResolver) RollBackDeployment(ctx context.Context, input deployment.RollBackDeploymentInput) (*deployment.DeploymentPayload, error) {
	return r.Deployments.RollBackDeployment(ctx, input)
}

func (r mutationResolver) PromoteDeployment(ctx context.Context, input deployment.PromoteDeploymentInput) (*deployment.DeploymentPayload, error) {
	return r.Deployments.PromoteDeployment(ctx, input)
}

func (r mutationResolver) DeleteDeployment(ctx context.Context, input deployment.DeleteDeploymentInput) (*deployment.DeploymentPayload, error) {
	return r.Deployments.DeleteDeployment(ctx, input)
}

func (r mutationResolver) DeletePromptRecords(ctx context.Context, input deployment.DeletePromptRecordsInput) (*deployment.DeletePromptRecordsPayload, error) {
	return r.Deployments.DeletePromptRecords(ctx, input)
}

func (r mutationResolver) CreateDeploymentKey(ctx context.Context, input key.CreateDeploymentKeyInput) (*key.CreateDeploymentKeyPayload, error) {
	return r.DeploymentKeys.CreateDeploymentKey(ctx, input)
}

func (r mutationResolver) UpdateDeploymentKey(ctx context.Context, input key.UpdateDeploymentKeyInput) (*key.DeploymentKeyPayload, error) {
	return r.DeploymentKeys.UpdateDeploymentKey(ctx, input)
}

func (r mutationResolver) RevokeDeploymentKey(ctx context.Context, input key.RevokeDeploymentKeyInput) (*key.DeploymentKeyPayload, error) {
	return r.DeploymentKeys.RevokeDeploymentKey(ctx, input)
}
