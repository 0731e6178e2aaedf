// Package template manages saved requests for sessions. A template belongs to a user or to a
// project, whose members can use it.
package template

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/sessiontemplate"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/session/saved"
	"github.com/berthhq/berth/manager/session/syntax"
	"github.com/berthhq/berth/manager/store"
)

const (
	maxTemplates   = 1000 // of a user or project
	maxDescription = 1000 // characters
)

// CreateSessionTemplateInput describes a template.
type CreateSessionTemplateInput struct {
	Name        string
	Description *string
	Project     *uuid.UUID
	Request     session.CreateSessionInput
}

// UpdateSessionTemplateInput changes the fields that are not nil.
type UpdateSessionTemplateInput struct {
	ID          uuid.UUID
	Name        *string
	Description *string
	Request     *session.CreateSessionInput
	Project     *uuid.UUID
	UpdatedAt   *time.Time
}

// DeleteSessionTemplateInput names the template to delete.
type DeleteSessionTemplateInput struct{ ID uuid.UUID }

// SessionTemplatePayload is a template after a change.
type SessionTemplatePayload struct{ Template *ent.SessionTemplate }

// DeleteSessionTemplatePayload is the deleted template.
type DeleteSessionTemplatePayload struct{ ID uuid.UUID }

// Service creates, changes and reads templates.
type Service struct {
	client *ent.Client
	keys   *seal.Ring // nil: environments and scripts are not encrypted
}

// New returns a Service.
func New(client *ent.Client, keys *seal.Ring) *Service {
	return &Service{client: client, keys: keys}
}

// CreateSessionTemplate saves a request, for the viewer or for a project.
func (s *Service) CreateSessionTemplate(ctx context.Context, in CreateSessionTemplateInput) (*SessionTemplatePayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	on := access.Object{Domain: v.Domain, Owner: v.User}
	if in.Project != nil {
		if on, err = s.within(ctx, *in.Project); err != nil {
			return nil, err
		}
	}
	if _, err := permit.Check(ctx, access.Create, access.Template, on); err != nil {
		return nil, err
	}
	if err := checkNames(&in.Name, in.Description); err != nil {
		return nil, err
	}
	c, err := s.pack(in.Request)
	if err != nil {
		return nil, err
	}
	row, err := s.insert(ctx, in, c, on)
	if ent.IsConstraintError(err) {
		return nil, nameTaken(in.Name)
	}
	if err != nil {
		return nil, err
	}
	return &SessionTemplatePayload{Template: row.Unwrap()}, nil
}

func (s *Service) insert(ctx context.Context, in CreateSessionTemplateInput, c *saved.Request, on access.Object) (row *ent.SessionTemplate, err error) {
	err = store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		if err := checkCount(ctx, tx, on); err != nil {
			return err
		}
		u := tx.SessionTemplate.Create().SetName(in.Name).SetNillableDescription(in.Description).SetDomainID(on.Domain).
			SetRequest(c.JSON).SetUpdatedAt(stamp())
		if c.Sealed != nil {
			u.SetSecretsSealed(c.Sealed)
		}
		if on.Project != uuid.Nil {
			u.SetProjectID(on.Project)
		} else {
			u.SetOwnerID(on.Owner)
		}
		row, err = u.Save(ctx)
		return err
	})
	return row, err
}

// UpdateSessionTemplate changes a template, or shares it with a project.
func (s *Service) UpdateSessionTemplate(ctx context.Context, in UpdateSessionTemplateInput) (*SessionTemplatePayload, error) {
	row, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	if err := checkNames(in.Name, in.Description); err != nil {
		return nil, err
	}
	if at := in.UpdatedAt; at != nil && !at.Equal(row.UpdatedAt) {
		return nil, problem.Changed("updatedAt", "the template was changed at %s, after you read it", row.UpdatedAt.Format(time.RFC3339Nano))
	}
	u := s.client.SessionTemplate.UpdateOne(row).Where(sessiontemplate.UpdatedAt(row.UpdatedAt)).SetUpdatedAt(stamp()).
		SetNillableName(in.Name).SetNillableDescription(in.Description)
	if in.Request != nil {
		c, err := s.pack(*in.Request)
		if err != nil {
			return nil, err
		}
		if u.SetRequest(c.JSON); c.Sealed == nil {
			u.ClearSecretsSealed()
		} else {
			u.SetSecretsSealed(c.Sealed)
		}
	}
	if in.Project != nil && (row.ProjectID == nil || *row.ProjectID != *in.Project) {
		if err := s.share(ctx, row, *in.Project); err != nil {
			return nil, err
		}
		u.SetProjectID(*in.Project).ClearOwnerID()
	}
	now, err := u.Save(ctx)
	switch {
	case ent.IsNotFound(err):
		return nil, problem.Aborted("another request has changed the template; reload it and try again")
	case ent.IsConstraintError(err) && in.Name != nil:
		return nil, nameTaken(*in.Name)
	case ent.IsConstraintError(err):
		return nil, nameTaken(row.Name)
	case err != nil:
		return nil, fmt.Errorf("change template %s: %w", row.ID, err)
	}
	return &SessionTemplatePayload{Template: now}, nil
}

// share checks whether the viewer can give a template to a project.
func (s *Service) share(ctx context.Context, row *ent.SessionTemplate, to uuid.UUID) error {
	on, err := s.within(ctx, to)
	if err != nil {
		return err
	}
	if on.Domain != row.DomainID {
		return problem.Invalid("project", "is in another domain than the template")
	}
	_, err = permit.Check(ctx, access.Create, access.Template, on)
	return err
}

// DeleteSessionTemplate deletes a template. Sessions that were started with it stay.
func (s *Service) DeleteSessionTemplate(ctx context.Context, in DeleteSessionTemplateInput) (*DeleteSessionTemplatePayload, error) {
	row, err := s.find(ctx, in.ID, access.Delete)
	if err != nil {
		return nil, err
	}
	if err := s.client.SessionTemplate.DeleteOne(row).Exec(ctx); err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("delete template %s: %w", row.ID, err)
	}
	return &DeleteSessionTemplatePayload{ID: row.ID}, nil
}

// find returns a template if the viewer is allowed to do op with it.
func (s *Service) find(ctx context.Context, id uuid.UUID, op access.Operation) (*ent.SessionTemplate, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	row, err := s.client.SessionTemplate.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "template", "id")
	}
	return row, permit.To(ctx, op, row)
}

// within returns the scopes of a template of a project that the viewer can see.
func (s *Service) within(ctx context.Context, id uuid.UUID) (access.Object, error) {
	p, err := s.client.Project.Query().Where(project.ID(id), project.Active(true)).Only(ctx)
	if err != nil {
		return access.Object{}, permit.Missing(err, "project", "project")
	}
	return access.Object{Domain: p.DomainID, Project: p.ID}, nil
}

// checkCount returns an error if a user or project has the largest number of templates already.
func checkCount(ctx context.Context, tx *ent.Tx, on access.Object) error {
	holder, which := on.Owner, sessiontemplate.OwnerID(on.Owner)
	if on.Project != uuid.Nil {
		holder, which = on.Project, sessiontemplate.ProjectID(on.Project)
	}
	if err := store.Lock(ctx, tx, "session templates "+holder.String()); err != nil {
		return err
	}
	n, err := tx.SessionTemplate.Query().Where(which).Count(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("count templates: %w", err)
	}
	if n >= maxTemplates {
		return problem.Exhausted("there are %d templates; delete some first", n).WithLimit(fmt.Sprint(maxTemplates))
	}
	return nil
}

func checkNames(name, description *string) error {
	if name != nil {
		if err := syntax.Name(*name); err != nil {
			return err
		}
	}
	if description != nil && *description != "" {
		return naming.Line("description", *description, maxDescription)
	}
	return nil
}

func nameTaken(name string) error {
	return problem.Exists("name", "a template of the same user or project is already named %q", name)
}

// stamp is the time of a change, as PostgreSQL keeps it.
func stamp() time.Time { return clock.Now().UTC().Truncate(time.Microsecond) }
