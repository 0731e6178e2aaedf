package graph_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/managertest"
)

// A group accepts the session types that it allows. The error for another type has the name of the
// group and its allowed types. An inactive group looks as if it did not exist.
func TestSessionTypesOfGroups(t *testing.T) {
	t.Parallel()
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
	refused("a type that the group does not take", start(vars{"resourceGroup": batch.ID, "type": "INTERACTIVE"}),
		problem.CodeInvalidArgument, "type", "batch", "resource group nightly takes batch sessions only")
	refused("a type that no group takes", start(vars{"type": "INTERACTIVE"}),
		problem.CodeInvalidArgument, "type", "", "no resource group open to you takes interactive sessions")
	batch.Update().SetActive(false).ExecX(ctx)
	refused("an inactive group", start(vars{"resourceGroup": batch.ID, "type": "BATCH", "command": []string{"true"}}),
		problem.CodeNotFound, "resourceGroup", "", "")
	batch.Update().SetActive(true).SetPublic(false).ExecX(ctx)
	refused("a group that is not open", start(vars{"resourceGroup": batch.ID, "type": "BATCH", "command": []string{"true"}}),
		problem.CodeNotFound, "resourceGroup", "", "")
}

// The error of a rejected request lists every limit that it exceeds, in a form for programs.
func TestRefusalListsEveryLimit(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m, ctx := w.Quiet(t), w.System(t)
	seed(t, w).more(1)
	w.Group.Update().SetPublic(true).ExecX(ctx)
	w.Client.Agent.Update().SetArchitecture("x86_64").ExecX(ctx)
	small := w.Client.ResourcePolicy.Create().SetName("small").SetTotalSlots(resource.Slots{"cpu": 1}).SetMaxPriority(5).SaveX(ctx)
	house := w.Client.ResourcePolicy.Create().SetName("house").SetTotalSlots(resource.Slots{"mem": 1}).SaveX(ctx)
	w.Client.PolicyAttachment.Create().SetPolicy(small).SetUser(w.A.Member).SetWithinProject(w.A.Project).SetResourceGroup(w.Group).ExecX(ctx)
	w.Client.PolicyAttachment.Create().SetPolicy(house).SetDomain(w.A.Domain).ExecX(ctx)
	f := &fixture{World: w, t: t, n: 1, domain: w.A.Domain, project: w.A.Project, owner: w.A.Member}
	body, err := json.Marshal(map[string]any{
		"query": `mutation($input: CreateSessionInput!) { createSession(input: $input) { session { id } } }`,
		"variables": vars{"input": vars{
			"image": f.startable().Reference, "project": w.A.Project.ID, "resourceGroup": w.Group.ID,
			"slots": vars{"cpu": "2", "mem": "1m"}, "priority": 6,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, text := m.As(t, w.A.Member).Post(t, "/graphql", "application/json", body)
	var got struct {
		Errors []struct {
			Extensions struct {
				Code   string
				Limits []map[string]string
			}
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got.Errors) != 1 || got.Errors[0].Extensions.Code != "RESOURCE_EXHAUSTED" {
		t.Fatalf("%v %s", err, text)
	}
	row := func(scope, holder, group, within, policy, what, used, requested, limit string) map[string]string {
		return map[string]string{"scope": scope, "holder": holder, "resourceGroup": group, "withinProject": within,
			"policy": policy, "what": what, "used": used, "requested": requested, "limit": limit}
	}
	if diff := cmp.Diff([]map[string]string{
		row("DOMAIN", "a", "", "", "house", "mem", "6", "1048576", "1"),
		row("USER", "member-a", "default", "project", "small", "cpu", "0", "2", "0.001"),
		row("USER", "member-a", "default", "project", "small", "priority", "0", "6", "5"),
	}, got.Errors[0].Extensions.Limits); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
