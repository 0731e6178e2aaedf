package template

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessiontemplate"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/session/saved"
)

// pack checks a request and returns it in the form of a row.
func (s *Service) pack(in session.CreateSessionInput) (*saved.Request, error) {
	return saved.Pack(s.keys, seal.TemplateSecrets, in)
}

// unpack returns the request of a row.
func (s *Service) unpack(row *ent.SessionTemplate) (in session.CreateSessionInput, err error) {
	in, err = saved.Unpack(s.keys, seal.TemplateSecrets, saved.Request{JSON: row.Request, Sealed: row.SecretsSealed})
	if err != nil {
		return in, fmt.Errorf("template %s: %w", row.ID, err)
	}
	return in, nil
}

// Requests returns the requests of templates that the viewer can see. Those who cannot start a
// session with a template get no values of environment variables and no script.
func (s *Service) Requests(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*session.CreateSessionInput, error) {
	rows, err := s.client.SessionTemplate.Query().Where(sessiontemplate.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	out := make(map[uuid.UUID]*session.CreateSessionInput, len(rows))
	for _, row := range rows {
		in, err := s.unpack(row)
		if err != nil {
			return nil, err
		}
		if !usable(viewer.From(ctx), row) {
			in = saved.Hide(in)
		}
		out[row.ID] = &in
	}
	return out, nil
}

// Launch returns the request of a template that the viewer can use.
func (s *Service) Launch(ctx context.Context, id uuid.UUID) (session.CreateSessionInput, error) {
	row, err := s.client.SessionTemplate.Get(ctx, id)
	if err != nil {
		return session.CreateSessionInput{}, permit.Missing(err, "template", "template")
	}
	if !usable(viewer.From(ctx), row) {
		return session.CreateSessionInput{}, problem.Forbidden("only its owner or the members of its project can use template %s", row.Name).WithField("template")
	}
	return s.unpack(row)
}

// usable reports whether a viewer owns a template, or is a member of its project.
func usable(v *viewer.Viewer, row *ent.SessionTemplate) bool {
	return row.OwnerID != nil && *row.OwnerID == v.User || row.ProjectID != nil && v.MemberOf(*row.ProjectID)
}
