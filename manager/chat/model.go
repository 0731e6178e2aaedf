package chat

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatendpoint"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentrevision"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// model returns the model that an input names, if the viewer can use it.
func (s *Service) model(ctx context.Context, v *viewer.Viewer, in ChatModelInput) (conversation.Model, error) {
	switch {
	case in.Deployment != nil && in.Endpoint == nil && in.Name == nil:
		return s.deployed(ctx, v, *in.Deployment, in.Revision)
	case in.Endpoint != nil && in.Name != nil && in.Deployment == nil && in.Revision == nil:
		return s.outside(ctx, v, *in.Endpoint, *in.Name)
	}
	return conversation.Model{}, problem.Invalid("model", "must be either a deployment, or an endpoint with the name of a model")
}

func (s *Service) deployed(ctx context.Context, v *viewer.Viewer, id uuid.UUID, revision *int) (m conversation.Model, err error) {
	d, err := s.Client.Deployment.Query().Where(deployment.ID(id), deployment.DomainID(v.Domain)).Only(ctx)
	if err != nil {
		return m, permit.Missing(err, "deployment", "deployment")
	}
	if d.EndedAt != nil || d.Status == deployment.StatusEnding {
		return m, problem.Precondition("deployment %s has ended", d.Name).WithField("deployment")
	}
	if revision != nil {
		is, err := s.Client.DeploymentRevision.Query().Where(deploymentrevision.DeploymentID(d.ID), deploymentrevision.Number(*revision)).Exist(ctx)
		if err != nil {
			return m, fmt.Errorf("read revision: %w", err)
		}
		if !is {
			return m, problem.NotFound(fmt.Sprintf("revision %d of deployment %s", *revision, d.Name)).WithField("revision")
		}
	}
	return conversation.Model{Name: d.Name, DeploymentID: &d.ID, Revision: revision}, nil
}

func (s *Service) outside(ctx context.Context, v *viewer.Viewer, id uuid.UUID, name string) (m conversation.Model, err error) {
	e, err := s.Client.ChatEndpoint.Get(ctx, id)
	if err != nil {
		return m, permit.Missing(err, "endpoint", "endpoint")
	}
	if !Usable(e, v.Domain) {
		return m, problem.Precondition("endpoint %s is not enabled for your domain", e.Name).WithField("endpoint")
	}
	if !slices.Contains(e.Models, name) {
		return m, problem.NotFound(fmt.Sprintf("model %.100q of endpoint %s", name, e.Name)).WithField("name")
	}
	return conversation.Model{Name: name, EndpointID: &e.ID}, nil
}

// Usable reports whether users of a domain can use an endpoint.
func Usable(e *ent.ChatEndpoint, domain uuid.UUID) bool {
	return e.Enabled && (len(e.Audience) == 0 || slices.Contains(e.Audience, domain))
}

// columns checks the columns of a chat. Those with a number that the chat has keep it, others get numbers from next on.
func (s *Service) columns(ctx context.Context, v *viewer.Viewer, in []ChatColumnInput, old []conversation.Column, next int) ([]conversation.Column, int, error) {
	if len(in) == 0 || len(in) > maxColumns {
		return nil, 0, problem.Invalid("columns", "has %d columns, 1 to %d are allowed", len(in), maxColumns).WithLimit(fmt.Sprint(maxColumns))
	}
	var list []conversation.Column
	for i, x := range in {
		at := fmt.Sprintf("columns.%d", i)
		c := conversation.Column{Number: next}
		if x.Number != nil {
			c.Number = *x.Number
			has := func(o conversation.Column) bool { return o.Number == c.Number }
			if !slices.ContainsFunc(old, has) || slices.ContainsFunc(list, has) {
				return nil, 0, problem.Invalid(at+".number", "%d is not the number of a column of the chat, or occurs twice", c.Number)
			}
		} else {
			next++
		}
		var err error
		if c.Model, err = s.model(ctx, v, x.Model); err != nil {
			return nil, 0, problem.Within(err, at+".model")
		}
		if c.Parameters, err = parameters(x.Parameters); err != nil {
			return nil, 0, problem.Within(err, at+".parameters")
		}
		list = append(list, c)
	}
	return list, next, nil
}

// Models returns the models that the viewer can use: deployments first.
func (s *Service) Models(ctx context.Context) ([]*conversation.Model, error) {
	v := viewer.From(ctx)
	out := []*conversation.Model{}
	rows, err := s.Client.Deployment.Query().
		Where(deployment.DomainID(v.Domain), deployment.EndedAtIsNil(), deployment.StatusNEQ(deployment.StatusEnding)).
		Order(deployment.ByName()).Limit(maxChatModels).Select(deployment.FieldID, deployment.FieldName).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list deployments: %w", err)
	}
	for _, d := range rows {
		out = append(out, &conversation.Model{Name: d.Name, DeploymentID: &d.ID})
	}
	endpoints, err := s.Client.ChatEndpoint.Query().Where(chatendpoint.Enabled(true)).Order(chatendpoint.ByName()).Limit(maxEndpoints).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list endpoints: %w", err)
	}
	for _, e := range endpoints {
		if !Usable(e, v.Domain) {
			continue
		}
		for _, name := range e.Models {
			out = append(out, &conversation.Model{Name: name, EndpointID: &e.ID})
		}
	}
	return out, nil
}
