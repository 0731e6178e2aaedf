package store

import (
	"context"
	"fmt"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentrevision"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/internal/viewer"
)

// Serving returns a deployment that starts replicas from revisions that are selected, or is about to, although it may have no
// replica now; nil if there is none.
func Serving(ctx context.Context, revisions *ent.DeploymentRevisionClient, where predicate.DeploymentRevision) (*ent.Deployment, error) {
	list, err := revisions.Query().Where(where, deploymentrevision.HasDeploymentWith(deployment.EndedAtIsNil())).WithDeployment().All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("look for deployments: %w", err)
	}
	for _, r := range list {
		if d := r.Edges.Deployment; r.Number == d.Current || r.Number == d.Target {
			return d, nil
		}
	}
	return nil, nil
}
