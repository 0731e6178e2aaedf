package client

import (
	"context"
)

// Ended reports whether the deployment has ended.
func (d *Deployment) Ended() bool { return d.Status == "ENDED" }

// DeploymentFilter selects deployments; zero values select all.
type DeploymentFilter struct {
	ID, Name string
	Part     string // of the name, in any case
	Live     bool   // not ended
	Owner    string // id
	Limit    int
}

// Deployments lists the deployments that the viewer can see, by name.
func (c *Client) Deployments(ctx context.Context, f DeploymentFilter) ([]Deployment, error) {
	where := nameIs(f.Name)
	put(where, "id", f.ID)
	put(where, "nameContainsFold", f.Part)
	put(where, "ownerID", f.Owner)
	if f.Live {
		where["endedAtIsNil"] = true
	}
	return collect(f.Limit, func(first *int, after string) (*queryDeploymentsDeploymentsDeploymentConnection, error) {
		out, err := queryDeployments(ctx, c, first, after, where)
		return &out.Deployments, err
	})
}

// Deployment reads one deployment by id.
func (c *Client) Deployment(ctx context.Context, id string) (*DeploymentDetail, error) {
	out, err := queryDeployment(ctx, c, id)
	if err == nil && (out.Node == nil || out.Node.ID == "") {
		return nil, notFound("deployment", id)
	}
	return out.Node, err
}

// DeploymentRevisions lists the newest 100 revisions of a deployment, newest first.
func (c *Client) DeploymentRevisions(ctx context.Context, id string) ([]DeploymentRevision, error) {
	out, err := queryDeploymentRevisions(ctx, c, id)
	if err != nil || out.Node == nil {
		return nil, err
	}
	all := []DeploymentRevision{}
	for _, e := range out.Node.Revisions.Edges {
		if e != nil && e.Node != nil {
			all = append(all, *e.Node)
		}
	}
	return all, nil
}

// DeploymentReplicas lists the newest 100 replicas of a deployment, newest first.
func (c *Client) DeploymentReplicas(ctx context.Context, id string) ([]DeploymentReplica, error) {
	out, err := queryDeploymentReplicas(ctx, c, id)
	if err != nil || out.Node == nil {
		return nil, err
	}
	all := []DeploymentReplica{}
	for _, e := range out.Node.Replicas.Edges {
		if e != nil && e.Node != nil {
			all = append(all, *e.Node)
		}
	}
	return all, nil
}

// DeploymentEvents lists the newest 100 events of a deployment, newest first.
func (c *Client) DeploymentEvents(ctx context.Context, id string) ([]DeploymentEvent, error) {
	out, err := queryDeploymentEvents(ctx, c, id)
	if err != nil || out.Node == nil {
		return nil, err
	}
	all := []DeploymentEvent{}
	for _, e := range out.Node.Events.Edges {
		if e != nil && e.Node != nil {
			all = append(all, *e.Node)
		}
	}
	return all, nil
}

// PromptRecords lists the recorded requests of a deployment, the newest first, at most limit.
func (c *Client) PromptRecords(ctx context.Context, id string, where Where, limit int) ([]PromptRecord, error) {
	return collect(limit, func(first *int, after string) (*deploymentRecordsPromptRecordsPromptRecordConnection, error) {
		out, err := queryPromptRecords(ctx, c, id, first, after, where)
		if err != nil || out.Node == nil {
			return &deploymentRecordsPromptRecordsPromptRecordConnection{}, err
		}
		return &out.Node.PromptRecords, nil
	})
}

// DeletePromptRecords deletes all recorded requests of a deployment, and returns their number.
func (c *Client) DeletePromptRecords(ctx context.Context, deployment string) (int, error) {
	out, err := deletePromptRecords(ctx, c, DeletePromptRecordsInput{Deployment: deployment})
	return out.Payload.Deleted, err
}

// ModelVariants lists the engines that serve models.
func (c *Client) ModelVariants(ctx context.Context) ([]ModelVariant, error) {
	out, err := queryModelVariants(ctx, c)
	return out.ModelVariants, err
}

// ModelsURL returns the base URL of the APIs of models, "" if no gateway serves models.
func (c *Client) ModelsURL(ctx context.Context) (string, error) {
	out, err := queryModelsURL(ctx, c)
	if err != nil || out.ModelsURL == nil {
		return "", err
	}
	return *out.ModelsURL, nil
}

// CreateDeployment creates a deployment.
func (c *Client) CreateDeployment(ctx context.Context, in CreateDeploymentInput) (*DeploymentDetail, error) {
	out, err := createDeployment(ctx, c, in)
	return &out.Payload.Deployment, err
}

// UpdateDeployment changes the settings of a deployment.
func (c *Client) UpdateDeployment(ctx context.Context, in UpdateDeploymentInput) (*DeploymentDetail, error) {
	out, err := updateDeployment(ctx, c, in)
	return &out.Payload.Deployment, err
}

// AddDeploymentRevision adds a revision to a deployment and begins the change to it.
func (c *Client) AddDeploymentRevision(ctx context.Context, in AddDeploymentRevisionInput) (*DeploymentDetail, error) {
	out, err := addDeploymentRevision(ctx, c, in)
	return &out.Payload.Deployment, err
}

// RollBackDeployment begins the change to an older revision; nil means the one before.
func (c *Client) RollBackDeployment(ctx context.Context, id string, revision *int) (*DeploymentDetail, error) {
	out, err := rollBackDeployment(ctx, c, RollBackDeploymentInput{ID: id, Revision: revision})
	return &out.Payload.Deployment, err
}

// PromoteDeployment moves all requests to the new revision.
func (c *Client) PromoteDeployment(ctx context.Context, id string) (*DeploymentDetail, error) {
	out, err := promoteDeployment(ctx, c, PromoteDeploymentInput{ID: id})
	return &out.Payload.Deployment, err
}

// DeleteDeployment ends a deployment after its requests; force cuts them.
func (c *Client) DeleteDeployment(ctx context.Context, id string, force bool) (*DeploymentDetail, error) {
	out, err := deleteDeployment(ctx, c, DeleteDeploymentInput{ID: id, Force: force})
	return &out.Payload.Deployment, err
}

// DeploymentKeys lists the viewer's keys for models that are not revoked; deployment "" means all.
func (c *Client) DeploymentKeys(ctx context.Context, deployment string) ([]DeploymentKey, error) {
	where := Where{"revokedAtIsNil": true}
	put(where, "deploymentID", deployment)
	return collect(0, func(first *int, after string) (*queryDeploymentKeysDeploymentKeysDeploymentKeyConnection, error) {
		out, err := queryDeploymentKeys(ctx, c, first, after, where)
		return &out.DeploymentKeys, err
	})
}

// CreateDeploymentKey creates a key for requests to models.
func (c *Client) CreateDeploymentKey(ctx context.Context, in CreateDeploymentKeyInput) (*NewDeploymentKey, error) {
	out, err := createDeploymentKey(ctx, c, in)
	return &out.Payload, err
}

// UpdateDeploymentKey changes the limits of a key.
func (c *Client) UpdateDeploymentKey(ctx context.Context, in UpdateDeploymentKeyInput) (*DeploymentKey, error) {
	out, err := updateDeploymentKey(ctx, c, in)
	return &out.Payload.Key, err
}

// RevokeDeploymentKey revokes a key.
func (c *Client) RevokeDeploymentKey(ctx context.Context, id string) error {
	_, err := revokeDeploymentKey(ctx, c, RevokeDeploymentKeyInput{ID: id})
	return err
}
