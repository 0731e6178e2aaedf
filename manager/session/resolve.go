package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/groupgrant"
	"github.com/berthhq/berth/ent/keypair"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/slot"
)

// resolver finds the rows that a request refers to. in is the result of references.
type resolver interface {
	resolve(ctx context.Context, v *viewer.Viewer, in CreateSessionInput) (*resolved, error)
}

// references returns the fields of a request that refer to rows. Requests with equal
// references are resolved alike, whatever their other fields.
func references(in CreateSessionInput, kind session.Type) CreateSessionInput {
	return CreateSessionInput{
		Image: in.Image, Type: &kind, Slots: in.Slots, Kernels: in.Kernels, Mounts: in.Mounts, AutoMount: in.AutoMount, Project: in.Project,
		ResourceGroup: in.ResourceGroup, DependsOn: in.DependsOn, Agents: in.Agents, StrictAgents: in.StrictAgents, SessionGroup: in.SessionGroup,
	}
}

// database is the resolver that reads the rows.
type database struct{ *Service }

func (s database) resolve(ctx context.Context, v *viewer.Viewer, in CreateSessionInput) (*resolved, error) {
	spec := newSpec(v, in)
	for _, do := range []inspection{
		s.checkNeeded, s.checkPlace, s.checkSessionGroup, s.checkAgents, s.checkImage, s.checkSlots, s.checkMounts, s.checkAutoMounts, s.checkPolicies,
	} {
		if err := do(ctx, v, in, spec); err != nil {
			return nil, err
		}
	}
	return &spec.resolved, nil
}

// checkPlace finds the project and the resource group.
func (s *Service) checkPlace(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) (err error) {
	if err := s.checkProject(ctx, v, in.Project, spec); err != nil {
		return err
	}
	spec.groups, err = s.groups(ctx, v, in.ResourceGroup, spec)
	return err
}

// CheckProject returns an error unless the viewer can start sessions in a project; nil is their only one.
func (s *Service) CheckProject(ctx context.Context, v *viewer.Viewer, named *uuid.UUID) error {
	return s.checkProject(ctx, v, named, &sessionSpec{})
}

// checkProject finds the project, in which the viewer must be allowed to start sessions.
func (s *Service) checkProject(ctx context.Context, v *viewer.Viewer, named *uuid.UUID, spec *sessionSpec) error {
	q := s.Client.Project.Query().Where(project.Active(true))
	switch {
	case named != nil:
		q.Where(project.ID(*named))
	case len(v.Projects) == 0:
		return problem.Precondition("you are in no project; ask an administrator to add you to one").WithField("project")
	case len(v.Projects) > 1:
		return problem.Invalid("project", "must be named, as you are in several projects")
	default:
		q.Where(project.ID(v.Projects[0]))
	}
	p, err := q.Only(ctx)
	if err != nil {
		return permit.Missing(err, "project", "project")
	}
	on := access.Object{Domain: p.DomainID, Project: p.ID}
	if v.MemberOf(p.ID) {
		on.Owner, spec.belongs = v.User, true // members own the sessions that they start in their project
	} else if !v.May(access.Create, access.Session, on) {
		return problem.NotFound("project").WithField("project")
	}
	if _, err := permit.Check(ctx, access.Create, access.Session, on); err != nil {
		return err
	}
	spec.project, spec.domain = p.ID, p.DomainID
	return nil
}

// groups finds the resource groups that the session may run in: the one that was
// named, or all that are open to the viewer in this project and allow the type,
// the oldest first. Superadmins use all.
func (s *Service) groups(ctx context.Context, v *viewer.Viewer, named *uuid.UUID, spec *sessionSpec) ([]uuid.UUID, error) {
	q := s.Client.ResourceGroup.Query().Where(resourcegroup.Active(true)).Order(resourcegroup.ByCreatedAt(), resourcegroup.ByID())
	if named != nil {
		q.Where(resourcegroup.ID(*named))
	}
	if !v.Superadmin() {
		q.Where(resourcegroup.Or(resourcegroup.Public(true), resourcegroup.HasGrantsWith(groupgrant.Or(
			groupgrant.DomainIDIn(v.Domain, spec.domain), groupgrant.ProjectID(spec.project), groupgrant.UserID(v.User),
			groupgrant.HasKeypairWith(keypair.UserID(v.User)),
		))))
	}
	open, err := q.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find resource groups: %w", err)
	}
	if len(open) == 0 {
		return nil, problem.NotFound("resource group").WithField("resourceGroup")
	}
	var list []uuid.UUID
	for _, g := range open {
		if slices.Contains(g.SessionTypes, string(spec.kind)) {
			list = append(list, g.ID)
		}
	}
	switch {
	case len(list) > 0:
		return list, nil
	case named == nil:
		return nil, problem.Invalid("type", "no resource group open to you takes %s sessions", spec.kind)
	}
	allowed := strings.Join(open[0].SessionTypes, ", ")
	return nil, problem.Invalid("type", "resource group %s takes %s sessions only", open[0].Name, allowed).WithLimit(allowed)
}

func (s *Service) checkImage(ctx context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) (err error) {
	spec.image, err = s.Images.Resolve(ctx, in.Image)
	return err
}

// checkSlots returns an error for slots with which neither the image nor the agents could ever run
// the session, and chooses its resource group.
func (s *Service) checkSlots(ctx context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) (err error) {
	if err := slot.Check(ctx, s.Client, in.Slots); err != nil {
		return err
	}
	if spec.kernels = 1; in.Kernels != nil {
		spec.kernels = *in.Kernels
	}
	if spec.kernels < 1 || spec.kernels > maxKernels {
		return problem.Invalid("kernels", "must be between 1 and %d", maxKernels).WithLimit(fmt.Sprintf("1..%d", maxKernels))
	}
	spec.slots = slot.Complete(in.Slots)
	slot.Fill(spec.slots, in.Slots, slot.Minimum(spec.image))
	if err := slot.CheckMinimum(spec.image, spec.slots); err != nil {
		return err
	}
	spec.group, err = s.Fitter.Choose(ctx, spec.groups, spec.need())
	return err
}

// need returns what the session requires of agents.
func (spec *sessionSpec) need() Need {
	return Need{Architecture: spec.image.Architecture, Slots: spec.slots, Kernels: spec.kernels, Only: spec.only()}
}

// total returns the slots of all kernels.
func (spec *sessionSpec) total() resource.Slots {
	total := resource.Slots{}
	for range spec.kernels {
		total.Add(spec.slots)
	}
	return total
}

// only returns the agents to which the session is restricted; nil: it can run on any.
func (spec *sessionSpec) only() []uuid.UUID {
	if spec.strict {
		return spec.agents
	}
	return nil
}

// checkAgents finds the agents that the request names, and keeps only their resource
// groups. Only users who may change the agents can restrict a session to them.
func (s *Service) checkAgents(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	spec.strict = in.StrictAgents != nil && *in.StrictAgents
	switch n := len(in.Agents); {
	case n == 0 && spec.strict:
		return problem.Invalid("agents", "must name at least one agent while strictAgents is set")
	case n == 0:
		return nil
	case n > maxAgents:
		return problem.Invalid("agents", "has %d agents, which is too many", n).WithLimit(fmt.Sprint(maxAgents))
	}
	found, err := s.Client.Agent.Query().Where(agent.IDIn(in.Agents...), agent.ResourceGroupIDIn(spec.groups...)).All(ctx)
	if err != nil {
		return fmt.Errorf("find agents: %w", err)
	}
	homes := map[uuid.UUID]bool{}
	for i, id := range in.Agents {
		field := fmt.Sprintf("agents[%d]", i)
		at := slices.IndexFunc(found, func(a *ent.Agent) bool { return a.ID == id })
		switch {
		case slices.Contains(in.Agents[:i], id):
			return problem.Invalid(field, "is named twice")
		case at < 0:
			return problem.NotFound("agent in a resource group open to the session").WithField(field)
		case spec.strict && !v.May(access.Update, access.Agent, access.Object{ID: id}):
			return problem.Forbidden("only users who may change agent %s may set strictAgents for it; without strictAgents the agent is preferred", found[at].Name).WithField("strictAgents")
		}
		homes[found[at].ResourceGroupID] = true
	}
	spec.agents = in.Agents
	spec.groups = slices.DeleteFunc(spec.groups, func(g uuid.UUID) bool { return !homes[g] })
	return nil
}
