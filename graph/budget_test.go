package graph_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/managertest"
)

// A budget refuses sessions through every door, also for requests at the same time to two managers, and
// a manager that replaces another one counts the same.
func TestBudgets(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	first, ctx := w.Quiet(t), w.System(t)
	seed(t, w).more(1)
	w.Group.Update().SetPublic(true).ExecX(ctx)
	w.Client.Agent.Update().SetArchitecture("x86_64").ExecX(ctx)
	f := &fixture{World: w, t: t, n: 1, domain: w.A.Domain, project: w.A.Project, owner: w.A.Member}
	image := f.startable().Reference
	root := first.As(t, w.Superadmin)
	for _, q := range []struct {
		query string
		in    vars
	}{
		{`mutation($in: SetPriceInput!) { setPrice(input: $in) { price { amount } } }`, vars{"slot": "cpu", "amount": "0.5"}},
		{`mutation($in: SetBudgetInput!) { setBudget(input: $in) { budget { id } } }`, vars{"project": w.A.Project.ID, "period": "TOTAL", "hard": "10"}},
	} {
		if errs := root.Ask(t, q.query, vars{"in": q.in}, nil); errs != nil {
			t.Fatal(errs)
		}
	}
	request := func(lifetime int) vars {
		return vars{"image": image, "project": w.A.Project.ID, "resourceGroup": w.Group.ID, "slots": vars{"cpu": "2"}, "type": "BATCH", "command": []string{"true"}, "lifetime": lifetime}
	}
	type trial struct {
		DryRun struct {
			Verdict      string
			PricePerHour *string
			Refusals     []struct{ Code, Message string }
		}
	}
	dryRun := func(m *managertest.Manager, in vars) (got trial) {
		t.Helper()
		if errs := m.As(t, w.A.Member).Ask(t, `query($in: CreateSessionInput!) { dryRun(input: $in) { verdict pricePerHour refusals { code message } } }`, vars{"in": in}, &got); errs != nil {
			t.Fatal(errs)
		}
		return got
	}
	if got := dryRun(first, request(3600)); got.DryRun.PricePerHour == nil || *got.DryRun.PricePerHour != "1" {
		t.Errorf("%+v", got)
	}
	second := w.Quiet(t)
	clients := []*managertest.Client{first.As(t, w.A.Member), second.As(t, w.A.Member)}
	var admitted atomic.Int64
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			errs := clients[i%2].Ask(t, `mutation($in: CreateSessionInput!) { createSession(input: $in) { session { id } } }`, vars{"in": request(3600)}, nil)
			switch {
			case errs == nil:
				admitted.Add(1)
			case errs.Code() != problem.CodeResourceExhausted:
				t.Error(errs)
			}
		})
	}
	wait.Wait()
	if n := admitted.Load(); n != 10 {
		t.Errorf("%d sessions of 1 credit were created with a budget of 10", n)
	}
	third := w.Quiet(t)
	if got := dryRun(third, request(60)); got.DryRun.Verdict != "REFUSED" || len(got.DryRun.Refusals) != 1 || !strings.Contains(got.DryRun.Refusals[0].Message, "10 promised") {
		t.Errorf("%+v", got)
	}
	errs := third.As(t, w.A.Member).Ask(t, `mutation($in: CreateSessionArrayInput!) { createSessionArray(input: $in) { sessions } }`,
		vars{"in": vars{"indexes": "1-3", "session": request(60)}}, nil)
	if errs.Code() != problem.CodeResourceExhausted {
		t.Errorf("an array: %s", errs)
	}
	var got struct {
		Budgets []struct {
			Status struct{ Spent, Promised string }
		}
	}
	if errs := third.As(t, w.A.Member).Ask(t, `{ budgets(mine: true) { status { spent promised } } }`, nil, &got); errs != nil || len(got.Budgets) != 1 || got.Budgets[0].Status.Promised != "10" {
		t.Errorf("%+v: %v", got, errs)
	}
}
