package manager_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const createTemplate = `mutation($in: CreateSessionTemplateInput!) { createSessionTemplate(input: $in) { template { id updatedAt } } }`

type templatePayload struct {
	Template struct {
		ID        uuid.UUID
		UpdatedAt time.Time
	}
}

func tryTemplate(t *testing.T, as *managertest.Client, in vars) (templatePayload, managertest.Errors) {
	t.Helper()
	var got struct{ CreateSessionTemplate templatePayload }
	errs := as.Ask(t, createTemplate, vars{"in": in}, &got)
	return got.CreateSessionTemplate, errs
}

func TestTemplates(t *testing.T) {
	c := clustertest.New(t, 1)
	request := clustertest.SessionInput(vars{"environment": vars{"SECRET": "very-secret"}, "tags": []string{"x"}}, "exit", "0")
	made, errs := tryTemplate(t, c.Member, vars{"name": "train", "request": request})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if _, errs := tryTemplate(t, c.Member, vars{"name": "train", "request": request}); errs.Code() != "ALREADY_EXISTS" {
		t.Errorf("a second one of the name: %s", errs)
	}
	for _, bad := range []vars{{"image": "prog:latest"}, clustertest.SessionInput(vars{"idempotencyKey": "k"}), clustertest.SessionInput(vars{"tags": []string{"-"}}), clustertest.SessionInput(vars{"environment": vars{"BERTH_X": "1"}}), clustertest.SessionInput(vars{"priority": 101})} {
		if _, errs := tryTemplate(t, c.Member, vars{"name": "bad", "request": bad}); errs.Code() != "INVALID_ARGUMENT" {
			t.Errorf("%v: %s", bad, errs)
		}
	}
	row := c.Client.SessionTemplate.GetX(c.System(t), made.Template.ID)
	if bytes.Contains(row.Request, []byte("very-secret")) {
		t.Errorf("the row has the secret in the clear: %s", row.Request)
	}
	s := c.Session(t, c.Create(t, vars{"template": made.Template.ID, "slots": vars{"mem": "32m"}, "name": "mine"}))
	if s.Name != "mine" || s.Slots["mem"] != 32<<20 || s.Environment["SECRET"] != "" || len(s.Tags) != 1 {
		t.Errorf("started as %+v", s)
	}
	const update = `mutation($in: UpdateSessionTemplateInput!) { updateSessionTemplate(input: $in) { template { updatedAt } } }`
	c.Member.Must(t, update, vars{"in": vars{"id": made.Template.ID, "description": "d", "updatedAt": made.Template.UpdatedAt}}, nil)
	if errs := c.Member.Ask(t, update, vars{"in": vars{"id": made.Template.ID, "description": "e", "updatedAt": made.Template.UpdatedAt}}, nil); errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("changed with an old version: %s", errs)
	}
	if errs := c.Member.Ask(t, update, vars{"in": vars{"id": made.Template.ID, "project": c.A.Project.ID}}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("shared by a plain member: %s", errs)
	}
	c.Member.Must(t, `mutation($id: ID!) { deleteSessionTemplate(input: {id: $id}) { id } }`, vars{"id": made.Template.ID}, nil)
	if _, errs := clustertest.TryCreate(t, c.Member, vars{"template": made.Template.ID}); errs.Code() != "NOT_FOUND" {
		t.Errorf("started with a deleted template: %s", errs)
	}
}

// Members of a template's project can use it, admins of the project can change it, and no one else
// can read its secrets.
func TestTemplatesOfAProject(t *testing.T) {
	c := clustertest.New(t, 1)
	lead := c.Manager.As(t, c.A.Lead)
	made, errs := tryTemplate(t, lead, vars{"name": "shared", "project": c.A.Project.ID, "request": clustertest.SessionInput(vars{"environment": vars{"SECRET": "s"}}, "exit", "0")})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if _, errs := tryTemplate(t, c.Member, vars{"name": "other", "project": c.A.Project.ID, "request": clustertest.SessionInput(nil, "exit", "0")}); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("created by a plain member: %s", errs)
	}
	c.Create(t, vars{"template": made.Template.ID, "project": c.A.Project.ID})
	const change = `mutation($id: ID!) { updateSessionTemplate(input: {id: $id, description: "d"}) { template { id } } }`
	if errs := c.Member.Ask(t, change, vars{"id": made.Template.ID}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("changed by a plain member: %s", errs)
	}
	secret := func(as *managertest.Client) (string, bool) {
		var got struct {
			Node *struct {
				Request struct{ Environment map[string]string }
			}
		}
		as.Must(t, `query($id: ID!) { node(id: $id) { ... on SessionTemplate { request { environment } } } }`, vars{"id": made.Template.ID}, &got)
		if got.Node == nil {
			return "", false
		}
		return got.Node.Request.Environment["SECRET"], true
	}
	if got, seen := secret(c.Member); got != "s" || !seen {
		t.Errorf("a member reads %q", got)
	}
	if got, seen := secret(c.Manager.As(t, c.Superadmin)); got != "" || !seen {
		t.Errorf("a superadmin reads %q", got)
	}
	if _, errs := clustertest.TryCreate(t, c.Manager.As(t, c.Superadmin), vars{"template": made.Template.ID, "project": c.A.Project.ID}); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("used by a superadmin who is not a member: %s", errs)
	}
	stranger := c.Manager.As(t, c.B.Member)
	if _, seen := secret(stranger); seen {
		t.Error("another user sees it")
	}
	if _, errs := clustertest.TryCreate(t, stranger, vars{"template": made.Template.ID}); errs.Code() != "NOT_FOUND" {
		t.Errorf("used by another user: %s", errs)
	}
}
