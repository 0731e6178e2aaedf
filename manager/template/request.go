package template

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessiontemplate"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session"
)

// contents are the columns of a request.
type contents struct {
	request json.RawMessage
	sealed  []byte
}

// secrets are the encrypted values in the row of a template.
type secrets struct {
	Environment     map[string]string            `json:"environment,omitempty"`
	BootstrapScript *string                      `json:"bootstrapScript,omitempty"`
	Apps            map[string]map[string]string `json:"apps,omitempty"`
}

func (x secrets) empty() bool {
	return len(x.Environment) == 0 && x.BootstrapScript == nil && len(x.Apps) == 0
}

// pack checks a request and returns it in the form of a row.
func (s *Service) pack(in session.CreateSessionInput) (*contents, error) {
	if err := session.CheckSaved(in); err != nil {
		return nil, problem.Within(err, "request")
	}
	c := &contents{}
	if s.keys != nil {
		var x secrets
		if in, x = hide(in); !x.empty() {
			text, err := json.Marshal(x)
			if err != nil {
				return nil, fmt.Errorf("encode environment: %w", err)
			}
			c.sealed = s.keys.Seal(seal.TemplateSecrets, text)
		}
	}
	var err error
	if c.request, err = json.Marshal(in); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return c, nil
}

// unpack returns the request of a row.
func (s *Service) unpack(row *ent.SessionTemplate) (in session.CreateSessionInput, err error) {
	if err := json.Unmarshal(row.Request, &in); err != nil {
		return in, fmt.Errorf("read template %s: %w", row.ID, err)
	}
	if len(row.SecretsSealed) == 0 {
		return in, nil
	}
	text, err := s.keys.Open(seal.TemplateSecrets, row.SecretsSealed)
	if err != nil {
		return in, fmt.Errorf("environment of template %s: %w", row.ID, err)
	}
	var x secrets
	if err := json.Unmarshal(text, &x); err != nil {
		return in, fmt.Errorf("environment of template %s: %w", row.ID, err)
	}
	in.Environment, in.BootstrapScript = x.Environment, x.BootstrapScript
	for i, a := range in.Apps {
		in.Apps[i].Environment = x.Apps[a.Name]
	}
	return in, nil
}

// hide separates the values of the environments and the script from a request.
func hide(in session.CreateSessionInput) (session.CreateSessionInput, secrets) {
	x := secrets{Environment: in.Environment, BootstrapScript: in.BootstrapScript, Apps: map[string]map[string]string{}}
	in.Environment, in.BootstrapScript = names(in.Environment), nil
	var apps []session.AppInput
	for _, a := range in.Apps {
		if len(a.Environment) > 0 {
			x.Apps[a.Name] = a.Environment
		}
		a.Environment = names(a.Environment)
		apps = append(apps, a)
	}
	in.Apps = apps
	return in, x
}

// names returns an environment with empty values.
func names(env map[string]string) map[string]string {
	out := make(map[string]string, len(env))
	for name := range env {
		out[name] = ""
	}
	return out
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
			in, _ = hide(in)
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
