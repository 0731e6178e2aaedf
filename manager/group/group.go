// Package group owns resource groups, which divide the agents, and the rules who can start
// sessions in them: everyone, or the domains, projects, users and keypairs to which a group is
// granted.
package group

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// Service writes resource groups and their grants.
type Service struct {
	client *ent.Client
	bus    *event.Bus
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{client: cfg.Client, bus: cfg.Bus} }

// CreateResourceGroupInput describes a new group. Without session types it allows all; no one can
// use it unless Public is true.
type CreateResourceGroupInput struct {
	Name         string
	Description  *string
	Public       *bool
	SessionTypes []string
	Options
}

// UpdateResourceGroupInput changes the fields that are not nil.
type UpdateResourceGroupInput struct {
	ID           uuid.UUID
	Name         *string
	Description  *string
	Active       *bool
	Public       *bool
	SessionTypes []string
	Options
}

// DeleteResourceGroupInput names the group to delete.
type DeleteResourceGroupInput struct{ ID uuid.UUID }

// ResourceGroupPayload is the result of mutations of a resource group.
type ResourceGroupPayload struct{ ResourceGroup *ent.ResourceGroup }

// DeleteResourceGroupPayload is the id of the deleted group.
type DeleteResourceGroupPayload struct{ ID uuid.UUID }

const maxDescription = 1000 // characters

// CreateResourceGroup creates a group without agents.
func (s *Service) CreateResourceGroup(ctx context.Context, in CreateResourceGroupInput) (*ResourceGroupPayload, error) {
	if _, err := permit.Check(ctx, access.Create, access.ResourceGroup, access.Object{}); err != nil {
		return nil, err
	}
	if err := check(&in.Name, in.Description, in.SessionTypes, &in.Options); err != nil {
		return nil, err
	}
	c := s.client.ResourceGroup.Create().SetName(in.Name).SetNillableDescription(in.Description).
		SetPublic(in.Public != nil && *in.Public)
	if err := in.Options.write(c.Mutation()); err != nil {
		return nil, err
	}
	if in.SessionTypes != nil {
		c.SetSessionTypes(in.SessionTypes)
	}
	g, err := c.Save(ctx)
	if ent.IsConstraintError(err) {
		return nil, taken(in.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("create resource group: %w", err)
	}
	return &ResourceGroupPayload{ResourceGroup: g}, nil
}

// UpdateResourceGroup changes a group. Running sessions continue.
func (s *Service) UpdateResourceGroup(ctx context.Context, in UpdateResourceGroupInput) (*ResourceGroupPayload, error) {
	g, err := s.permitted(ctx, access.Update, in.ID, "id")
	if err != nil {
		return nil, err
	}
	if err := check(in.Name, in.Description, in.SessionTypes, &in.Options); err != nil {
		return nil, err
	}
	up := g.Update().SetNillableName(in.Name).SetNillableDescription(in.Description).
		SetNillableActive(in.Active).SetNillablePublic(in.Public)
	if err := in.Options.write(up.Mutation()); err != nil {
		return nil, err
	}
	if in.SessionTypes != nil {
		up.SetSessionTypes(in.SessionTypes)
	}
	g, err = up.Save(ctx)
	if ent.IsConstraintError(err) {
		return nil, taken(*in.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("change resource group %s: %w", in.ID, err)
	}
	s.bus.Publish(ctx, event.Event{Topic: event.Pending}) // pending sessions may fit now
	return &ResourceGroupPayload{ResourceGroup: g}, nil
}

// DeleteResourceGroup deletes an empty group.
func (s *Service) DeleteResourceGroup(ctx context.Context, in DeleteResourceGroupInput) (*DeleteResourceGroupPayload, error) {
	g, err := s.permitted(ctx, access.Delete, in.ID, "id")
	if err != nil {
		return nil, err
	}
	all := viewer.SystemContext(ctx)
	agents, err := s.client.Agent.Query().Where(agent.ResourceGroupID(g.ID)).Count(all)
	if err != nil {
		return nil, fmt.Errorf("count agents: %w", err)
	}
	if agents > 0 {
		return nil, problem.Precondition("the group has %d agents; move them to another one first", agents).WithField("id")
	}
	live, err := s.client.Session.Query().Where(session.ResourceGroupID(g.ID), session.TerminatedAtIsNil()).Count(all)
	if err != nil {
		return nil, fmt.Errorf("count sessions: %w", err)
	}
	if live > 0 {
		return nil, problem.Precondition("the group has %d sessions; end them first", live).WithField("id")
	}
	// The foreign keys of agents and sessions prevent the deletion, even for rows that were added
	// in between.
	err = s.client.ResourceGroup.DeleteOne(g).Exec(ctx)
	if ent.IsConstraintError(err) {
		return nil, problem.Precondition("sessions that ended in the group are still kept; deactivate it instead").WithField("id")
	}
	if err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("delete resource group %s: %w", in.ID, err)
	}
	return &DeleteResourceGroupPayload{ID: in.ID}, nil
}

// permitted returns a group if the viewer can do op on it.
func (s *Service) permitted(ctx context.Context, op access.Operation, id uuid.UUID, field string) (*ent.ResourceGroup, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	g, err := s.client.ResourceGroup.Query().Where(resourcegroup.ID(id)).Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "resource group", field)
	}
	_, err = permit.Check(ctx, op, access.ResourceGroup, access.Object{ID: id})
	return g, err
}

func check(name, description *string, sessionTypes []string, options *Options) error {
	if name != nil {
		if err := naming.Name("name", *name); err != nil {
			return err
		}
	}
	if description != nil {
		if err := naming.Line("description", *description, maxDescription); err != nil {
			return err
		}
	}
	if sessionTypes != nil && len(sessionTypes) == 0 {
		return problem.Invalid("sessionTypes", "must not be empty; deactivate the group instead")
	}
	for i, t := range sessionTypes {
		if !slices.Contains(lifecycle.SessionTypes, t) || slices.Contains(sessionTypes[:i], t) {
			return problem.Invalid(fmt.Sprintf("sessionTypes[%d]", i), "%q is not a session type or is listed twice; allowed: %s", t, strings.Join(lifecycle.SessionTypes, ", "))
		}
	}
	return options.check()
}

func taken(name string) error {
	return problem.Exists("name", "a resource group is already named %q", name)
}
