package identity

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/imagebuild"
	"github.com/berthhq/berth/ent/invitation"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/rolegrant"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionarray"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/ent/sessiongroup"
	"github.com/berthhq/berth/ent/sessionmount"
	"github.com/berthhq/berth/ent/sessiontemplate"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// CreateProjectInput describes a new project.
type CreateProjectInput struct {
	Name        string
	Description *string
	Domain      uuid.UUID
	Type        *project.Type
	Policy      *uuid.UUID
}

// ProjectPayload is a project after a change.
type ProjectPayload struct{ Project *ent.Project }

// CreateProject creates a project in an active domain.
func (s *Service) CreateProject(ctx context.Context, in CreateProjectInput) (*ProjectPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if err := called(in.Name, in.Description); err != nil {
		return nil, err
	}
	if in.Type != nil && project.TypeValidator(*in.Type) != nil {
		return nil, problem.Invalid("type", "is not a type of project")
	}
	var p *ent.Project
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		if _, err := usableDomain(ctx, tx.Domain, in.Domain); err != nil {
			return err
		}
		if _, err := permit.Check(ctx, access.Create, access.Project, access.Object{Domain: in.Domain}); err != nil {
			return err
		}
		if err := bindable(ctx, tx, in.Policy); err != nil {
			return err
		}
		p, err = tx.Project.Create().SetName(in.Name).SetNillableDescription(in.Description).
			SetNillableType(in.Type).SetDomainID(in.Domain).Save(ctx)
		if err != nil || in.Policy == nil {
			return err
		}
		return tx.PolicyAttachment.Create().SetPolicyID(*in.Policy).SetProjectID(p.ID).Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("create project: %w", err)
	}
	return &ProjectPayload{Project: p.Unwrap()}, nil
}

// usableDomain returns an active domain that the viewer can see.
func usableDomain(ctx context.Context, domains *ent.DomainClient, id uuid.UUID) (*ent.Domain, error) {
	d, err := domains.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "domain", "domain")
	}
	if !d.Active {
		return nil, problem.Precondition("domain %s is not active", d.Name).WithField("domain")
	}
	return d, nil
}

// UpdateProjectInput changes the fields that are not nil.
type UpdateProjectInput struct {
	ID          uuid.UUID
	Name        *string
	Description *string
	Active      *bool
}

// DeleteProjectInput names the project twice, as a protection against mistakes.
type DeleteProjectInput struct {
	ID   uuid.UUID
	Name string
}

// DeleteProjectPayload is the id of the deleted project.
type DeleteProjectPayload struct{ ID uuid.UUID }

// objectOf returns a project in the form that permissions use.
func objectOf(p *ent.Project) access.Object {
	return access.Object{ID: p.ID, Domain: p.DomainID, Project: p.ID}
}

// UpdateProject changes a project. Its admins can do so, but deactivation requires the
// permission to remove it.
func (s *Service) UpdateProject(ctx context.Context, in UpdateProjectInput) (*ProjectPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if in.Name != nil {
		if err := called(*in.Name, nil); err != nil {
			return nil, err
		}
	}
	if in.Description != nil {
		if err := called("name", in.Description); err != nil {
			return nil, err
		}
	}
	var p *ent.Project
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		if p, err = tx.Project.Get(ctx, in.ID); err != nil {
			return permit.Missing(err, "project", "id")
		}
		if _, err := permit.Check(ctx, access.Update, access.Project, objectOf(p)); err != nil {
			return err
		}
		if in.Active != nil && *in.Active != p.Active {
			if _, err := permit.Check(ctx, access.Delete, access.Project, objectOf(p)); err != nil {
				return err
			}
		}
		p, err = p.Update().SetNillableName(in.Name).SetNillableDescription(in.Description).SetNillableActive(in.Active).Save(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change project %s: %w", in.ID, err)
	}
	return &ProjectPayload{Project: p.Unwrap()}, nil
}

// DeleteProject removes a project without live sessions and folders, with its
// memberships and the history of its sessions.
func (s *Service) DeleteProject(ctx context.Context, in DeleteProjectInput) (*DeleteProjectPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	var members []uuid.UUID
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		p, err := tx.Project.Query().Where(project.ID(in.ID)).ForUpdate().Only(ctx)
		if err != nil {
			return permit.Missing(err, "project", "id")
		}
		if _, err := permit.Check(ctx, access.Delete, access.Project, objectOf(p)); err != nil {
			return err
		}
		if p.Name != in.Name {
			return problem.Invalid("name", "is not the project's name")
		}
		members, err = deleteProject(viewer.SystemContext(ctx), tx, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("purge project %s: %w", in.ID, err)
	}
	for _, one := range members {
		s.logins.Disconnect(ctx, one)
	}
	return &DeleteProjectPayload{ID: in.ID}, nil
}

func deleteProject(ctx context.Context, tx *ent.Tx, p *ent.Project) (members []uuid.UUID, err error) {
	live, err := tx.Session.Query().Where(session.ProjectID(p.ID), session.TerminatedAtIsNil()).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count sessions: %w", err)
	}
	folders, err := tx.Vfolder.Query().Where(vfolder.ProjectID(p.ID), vfolder.StatusNEQ(vfolder.StatusDeleted)).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count folders: %w", err)
	}
	served, err := serving(ctx, tx, deployment.ProjectID(p.ID))
	if err != nil {
		return nil, err
	}
	if len(served) > 0 {
		return nil, problem.Precondition("project %s still has %s, %s among them: delete them first", p.Name, counted(len(served), "deployment"), served[0])
	}
	if live+folders > 0 {
		return nil, problem.Precondition("project %s still has %s and %s", p.Name, counted(live, "live session"), counted(folders, "folder"))
	}
	err = tx.Membership.Query().Where(membership.ProjectID(p.ID)).Select(membership.FieldUserID).Scan(ctx, &members)
	if err != nil {
		return nil, fmt.Errorf("read members: %w", err)
	}
	of := session.ProjectID(p.ID)
	for _, step := range []struct {
		what   string
		remove func() (int, error)
	}{
		{"deployments", func() (int, error) { return tx.Deployment.Delete().Where(deployment.ProjectID(p.ID)).Exec(ctx) }},
		{"image builds", func() (int, error) { return tx.ImageBuild.Delete().Where(imagebuild.ProjectID(p.ID)).Exec(ctx) }},
		{"allocations", func() (int, error) { return tx.Allocation.Delete().Where(allocation.ProjectID(p.ID)).Exec(ctx) }},
		{"kernels", func() (int, error) { return tx.Kernel.Delete().Where(kernel.HasSessionWith(of)).Exec(ctx) }},
		{"mounts", func() (int, error) {
			return tx.SessionMount.Delete().Where(sessionmount.HasSessionWith(of)).Exec(ctx)
		}},
		{"history", func() (int, error) {
			return tx.SessionEvent.Delete().Where(sessionevent.HasSessionWith(of)).Exec(ctx)
		}},
		{"sessions", func() (int, error) { return tx.Session.Delete().Where(of).Exec(ctx) }},
		{"arrays", func() (int, error) { return tx.SessionArray.Delete().Where(sessionarray.ProjectID(p.ID)).Exec(ctx) }},
		{"session templates", func() (int, error) {
			return tx.SessionTemplate.Delete().Where(sessiontemplate.ProjectID(p.ID)).Exec(ctx)
		}},
		{"images", func() (int, error) {
			return tx.Image.Update().Where(image.ProjectID(p.ID)).SetVisibility(image.VisibilityPrivate).ClearProjectID().Save(ctx)
		}},
		{"session groups", func() (int, error) {
			return tx.SessionGroup.Delete().Where(sessiongroup.ProjectID(p.ID)).Exec(ctx)
		}},
		{"memberships", func() (int, error) { return tx.Membership.Delete().Where(membership.ProjectID(p.ID)).Exec(ctx) }},
		{"invitations", func() (int, error) { return tx.Invitation.Delete().Where(invitation.ProjectID(p.ID)).Exec(ctx) }},
		{"grants", func() (int, error) { return tx.RoleGrant.Delete().Where(rolegrant.ScopeID(p.ID)).Exec(ctx) }},
	} {
		if _, err := step.remove(); err != nil {
			return nil, fmt.Errorf("remove %s: %w", step.what, err)
		}
	}
	return members, tx.Project.DeleteOne(p).Exec(ctx)
}

// serving returns the names of deployments that have not ended.
func serving(ctx context.Context, tx *ent.Tx, which predicate.Deployment) ([]string, error) {
	var names []string
	err := tx.Deployment.Query().Where(which, deployment.EndedAtIsNil()).Order(deployment.ByName()).Select(deployment.FieldName).Scan(ctx, &names)
	if err != nil {
		return nil, fmt.Errorf("look for deployments: %w", err)
	}
	return names, nil
}
