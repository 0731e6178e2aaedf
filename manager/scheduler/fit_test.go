package scheduler_test

import (
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// TestGroupThatWantsLinks has two accelerators without a link, in a group that requires links. A
// request for more than one accelerator is refused at once until the accelerators have a link.
func TestGroupThatWantsLinks(t *testing.T) {
	client, db := identitytest.Store(t)
	b := newHarness(t, client, db)
	b.agents(t, 1, 4, 2)
	ctx := b.system(t)
	client.ResourceGroup.UpdateOne(b.group).SetTopology(resourcegroup.TopologyLinked).ExecX(ctx)
	ask := func(shares int64) error {
		_, err := b.create(b.As(t, b.A.Member), resource.Slots{resource.CPU: 100, resource.Mem: 1 << 30, "cuda.shares": shares})
		return err
	}
	for _, shares := range []int64{1500, 2000} {
		err := ask(shares)
		if p, _ := problem.From(err); !errdefs.IsInvalidArgument(err) || p.Field != "slots" || p.Limit != "linked" {
			t.Errorf("%d thousandths without a link: %v, field %q, limit %q", shares, err, p.Field, p.Limit)
		}
	}
	if err := ask(1000); err != nil {
		t.Errorf("one: %v", err)
	}
	client.Agent.Update().SetLinks([]report.Link{{A: "gpu-0", B: "gpu-1", Type: "nvlink", Distance: 1}}).ExecX(ctx)
	if err := ask(2000); err != nil {
		t.Errorf("two with a link: %v", err)
	}
}
