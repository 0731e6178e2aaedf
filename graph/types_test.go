package graph_test

import (
	"testing"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/managertest"
)

// A group takes the types of sessions that it allows; another is refused with the
// group's name and what it takes. One that is inactive is as if it were not there.
func TestSessionTypesOfGroups(t *testing.T) {
	w := managertest.New(t)
	m, ctx := w.Quiet(t), w.System(t)
	member := m.As(t, w.A.Member)
	f := &fixture{World: w, t: t, n: 1, domain: w.A.Domain, project: w.A.Project, owner: w.A.Member}
	image := f.startable().Reference
	batch := w.Client.ResourceGroup.Create().SetName("nightly").SetPublic(true).SetSessionTypes([]string{"batch"}).SaveX(ctx)
	w.Group.Update().SetPublic(true).SetSessionTypes([]string{"batch"}).ExecX(ctx)
	start := func(more vars) managertest.Errors {
		in := vars{"image": image, "project": w.A.Project.ID, "slots": vars{"cpu": "1"}}
		for k, v := range more {
			in[k] = v
		}
		return member.Ask(t, `mutation($input: CreateSessionInput!) { createSession(input: $input) { session { id } } }`, vars{"input": in}, nil)
	}
	refused := func(what string, errs managertest.Errors, code, field, limit, message string) {
		t.Helper()
		if len(errs) != 1 || errs.Code() != code || errs[0].Extensions.Field != field || errs[0].Extensions.Limit != limit || message != "" && errs[0].Message != message {
			t.Errorf("%s: %s", what, errs)
		}
	}
	refused("a type that the group does not take", start(vars{"resourceGroup": batch.ID, "type": "interactive"}),
		problem.CodeInvalidArgument, "type", "batch", "resource group nightly takes batch sessions only")
	refused("a type that no group takes", start(vars{"type": "interactive"}),
		problem.CodeInvalidArgument, "type", "", "no resource group open to you takes interactive sessions")
	batch.Update().SetActive(false).ExecX(ctx)
	refused("an inactive group", start(vars{"resourceGroup": batch.ID, "type": "batch", "command": []string{"true"}}),
		problem.CodeNotFound, "resourceGroup", "", "")
	batch.Update().SetActive(true).SetPublic(false).ExecX(ctx)
	refused("a group that is not open", start(vars{"resourceGroup": batch.ID, "type": "batch", "command": []string{"true"}}),
		problem.CodeNotFound, "resourceGroup", "", "")
}
