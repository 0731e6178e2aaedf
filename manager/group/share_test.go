package group_test

import (
	"math"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/group"
)

func TestOptionsHaveRanges(t *testing.T) {
	w := start(t)
	root, g := w.As(t, w.Superadmin), w.make(t, "gpu", true)
	n := func(n int) *int { return &n }
	for _, c := range []struct {
		name, field string
		in          group.Options
	}{
		{"holdAfter below -1", "holdAfter", group.Options{HoldAfter: n(-2)}},
		{"holdAfter above a month", "holdAfter", group.Options{HoldAfter: n(30*24*3600 + 1)}},
		{"halfLife below a minute", "halfLife", group.Options{HalfLife: n(59)}},
		{"halfLife above a year", "halfLife", group.Options{HalfLife: n(366 * 24 * 3600)}},
		{"lookback of zero", "lookback", group.Options{Lookback: n(0)}},
		{"lookback above a year", "lookback", group.Options{Lookback: n(366 * 24 * 3600)}},
		{"valid options", "", group.Options{HoldAfter: n(-1), HalfLife: n(60), Lookback: n(3600)}},
	} {
		code := problem.CodeInvalidArgument
		if c.field == "" {
			code = ""
		}
		_, err := w.UpdateResourceGroup(root, group.UpdateResourceGroupInput{ID: g.ID, Options: c.in})
		want(t, c.name, err, code, c.field)
		if p, _ := problem.From(err); err != nil && p.Limit == "" {
			t.Errorf("%s: the answer has no limit: %v", c.name, err)
		}
	}
	if g = w.Client.ResourceGroup.GetX(root, g.ID); g.HoldAfter != -1 || g.HalfLife != 60 || g.Lookback != 3600 {
		t.Errorf("kept %d, %d, %d", g.HoldAfter, g.HalfLife, g.Lookback)
	}
}

func TestShareWeightsAreChecked(t *testing.T) {
	w := start(t)
	root, g, none := w.As(t, w.Superadmin), w.make(t, "gpu", true), uuid.New()
	me, mine := &w.A.Member.ID, &w.A.Project.ID
	for _, c := range []struct {
		name, code, field string
		in                group.SetShareWeightInput
	}{
		{"no weight", problem.CodeInvalidArgument, "weight", group.SetShareWeightInput{User: me}},
		{"too much", problem.CodeInvalidArgument, "weight", group.SetShareWeightInput{User: me, Weight: 1000.5}},
		{"a negative weight", problem.CodeInvalidArgument, "weight", group.SetShareWeightInput{User: me, Weight: -1}},
		{"not a number", problem.CodeInvalidArgument, "weight", group.SetShareWeightInput{User: me, Weight: math.NaN()}},
		{"no holder", problem.CodeInvalidArgument, "input", group.SetShareWeightInput{Weight: 1}},
		{"two", problem.CodeInvalidArgument, "input", group.SetShareWeightInput{Weight: 1, User: me, Project: mine}},
		{"a project within a project", problem.CodeInvalidArgument, "withinProject", group.SetShareWeightInput{Weight: 1, Project: mine, WithinProject: mine}},
		{"an unknown group", problem.CodeNotFound, "resourceGroup", group.SetShareWeightInput{Weight: 1, User: me, ResourceGroup: &none}},
		{"an unknown project", problem.CodeNotFound, "withinProject", group.SetShareWeightInput{Weight: 1, User: me, WithinProject: &none}},
		{"an unknown user", problem.CodeNotFound, "user", group.SetShareWeightInput{Weight: 1, User: &none}},
	} {
		_, err := w.SetShareWeight(root, c.in)
		want(t, c.name, err, c.code, c.field)
	}
	_, err := w.SetShareWeight(w.As(t, w.A.Admin), group.SetShareWeightInput{Weight: 2, User: me, ResourceGroup: &g.ID})
	want(t, "by a domain's admin", err, problem.CodePermissionDenied, "")
	_, err = w.DeleteShareWeight(root, group.DeleteShareWeightInput{ID: none})
	want(t, "remove none", err, problem.CodeNotFound, "id")
}

// A holder has only one weight per group, even after concurrent requests.
func TestShareWeightIsOneRow(t *testing.T) {
	w := start(t)
	root, g := w.As(t, w.Superadmin), w.make(t, "gpu", true)
	me, mine := &w.A.Member.ID, &w.A.Project.ID
	places := []group.SetShareWeightInput{
		{User: me}, {User: me, WithinProject: mine}, {User: me, ResourceGroup: &g.ID},
		{User: me, ResourceGroup: &g.ID, WithinProject: mine}, {Project: mine}, {Domain: &w.A.ID},
	}
	var all sync.WaitGroup
	for i := range 4 * len(places) {
		all.Go(func() {
			in := places[i%len(places)]
			in.Weight = float64(1 + i)
			if _, err := w.SetShareWeight(root, in); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	system := viewer.SystemContext(t.Context())
	if n := w.Client.ShareWeight.Query().CountX(system); n != len(places) {
		t.Errorf("%d weights in %d places", n, len(places))
	}
	in := places[3]
	in.Weight = 0.25
	set, err := w.SetShareWeight(root, in)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Client.ShareWeight.GetX(system, set.ShareWeight.ID); got.Weight != 0.25 || *got.WithinProjectID != *mine || *got.ResourceGroupID != g.ID {
		t.Errorf("set %v", got)
	}
	if _, err := w.DeleteShareWeight(root, group.DeleteShareWeightInput{ID: set.ShareWeight.ID}); err != nil {
		t.Fatal(err)
	}
	if n := w.Client.ShareWeight.Query().CountX(system); n != len(places)-1 {
		t.Errorf("%d weights after one was removed", n)
	}
}
