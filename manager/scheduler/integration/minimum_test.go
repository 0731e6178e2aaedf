package integration

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// The labels of an image contain the minimum resources of its containers. createSession, a dry run
// and a change refuse less, and a request without cpu or memory gets the minimum.
func TestMinimumOfAnImage(t *testing.T) {
	c := clustertest.New(t, 0)
	c.Grow(t, 1)
	c.Client.Image.UpdateOne(c.Image).SetLabels(map[string]string{
		"ai.backend.resource.min.cpu": "0.1", "ai.backend.resource.min.mem": "8g", "berth.resource.min.mem": "32m",
		"ai.backend.resource.min.cuda.device": "1", "ai.backend.resource.min.cuda.shares": "0.5",
		"berth.resource.min.NOT": "1", "berth.resource.min.rocm.device": "many", "maintainer": "somebody",
	}).ExecX(c.System(t))
	var shown struct {
		Images struct {
			Edges []struct {
				Node struct {
					Name         string
					MinimumSlots map[string]string
				}
			}
		}
	}
	c.Member.Must(t, `{ images(where: {name: "prog:latest"}) { edges { node { name minimumSlots } } } }`, nil, &shown)
	if got, want := fmt.Sprint(shown.Images.Edges[0].Node.MinimumSlots), "map[cpu:0.1 cuda.device:1 cuda.shares:0.5 mem:33554432]"; got != want {
		t.Errorf("the minimum is %s, want %s", got, want)
	}
	c.Client.SlotType.Create().SetName("cuda.shares").SetKind("shares").SetQuantum("0.01").ExecX(c.System(t))
	c.Client.SlotType.Create().SetName("cuda.device").SetKind("count").ExecX(c.System(t))
	for _, one := range []struct {
		slots                 managertest.Vars
		field, message, limit string
	}{
		{managertest.Vars{"cpu": "0.05", "cuda.device": "1"}, "slots.cpu", "0.05 is below the minimum of 0.1 that image prog:latest needs", "0.1"},
		{managertest.Vars{"cpu": "1", "mem": "16m", "cuda.device": "1"}, "slots.mem", "16 MiB is below the minimum of 32 MiB that image prog:latest needs", "33554432"},
		{managertest.Vars{"cpu": "1"}, "slots.cuda.device", "0 is below the minimum of 1 that image prog:latest needs", "1"},
		{managertest.Vars{"cpu": "1", "cuda.shares": "0.25"}, "slots.cuda.shares", "0.25 is below the minimum of 0.5 that image prog:latest needs", "0.5"},
	} {
		in := clustertest.SessionInput(managertest.Vars{"slots": one.slots}, "true")
		_, errs := clustertest.TryCreate(t, c.Member, in)
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != one.field || errs[0].Message != one.message || errs[0].Extensions.Limit != one.limit {
			t.Errorf("%v: %s", one.slots, errs)
		}
		var got trial
		c.Member.Must(t, dryRun, managertest.Vars{"in": in}, &got)
		if d := got.DryRun; d.Verdict != "REFUSED" || len(d.Refusals) != 1 || d.Refusals[0].Field != one.field {
			t.Errorf("a dry run of %v: %+v", one.slots, d)
		}
	}

	c.Client.Image.UpdateOne(c.Image).SetLabels(map[string]string{"berth.resource.min.cpu": "0.1", "berth.resource.min.mem": "2g"}).ExecX(c.System(t))
	id := c.Create(t, clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.1"}, "startsAt": c.A.CreatedAt.AddDate(0, 0, 10)}, "sleep", "600"))
	if s := c.Session(t, id); s.Status != lifecycle.Pending || s.Slots["mem"] != 2<<30 {
		t.Errorf("it is %s with %s", s.Status, s.Slots)
	}
	change := func(id uuid.UUID, slots managertest.Vars) managertest.Errors {
		return c.Member.Ask(t, changePending, managertest.Vars{"in": managertest.Vars{"id": id, "slots": slots}}, nil)
	}
	if errs := change(id, managertest.Vars{"cpu": "0.1", "mem": "1g"}); errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "slots.mem" {
		t.Errorf("changed to less: %s", errs)
	}
	if errs := change(id, managertest.Vars{"cpu": "0.2", "mem": "2g"}); len(errs) > 0 {
		t.Errorf("changed to enough: %s", errs)
	}
}
