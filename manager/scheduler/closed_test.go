package scheduler_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// TestClosedAgents has one agent for each reason to accept no sessions. The pending reason names
// these reasons.
func TestClosedAgents(t *testing.T) {
	client, db := identitytest.Store(t)
	b := newHarness(t, client, db)
	b.agents(t, 5, 4, 0)
	ctx := b.system(t)
	all := client.Agent.Query().Order(agent.ByName()).AllX(ctx)
	client.Agent.UpdateOne(all[0]).SetSchedulable(false).SetCordonReason("new disks").ExecX(ctx)
	client.Agent.UpdateOne(all[1]).SetSchedulable(false).SetCordonReason("new fans").SetDrainAction(agent.DrainActionTerminate).ExecX(ctx)
	client.Agent.UpdateOne(all[2]).SetStatus(agent.StatusLost).ExecX(ctx)
	client.Agent.UpdateOne(all[3]).SetStatus(agent.StatusLost).SetSchedulable(false).SetCordonReason("gone for good").ExecX(ctx)
	client.Agent.UpdateOne(all[4]).SetConditions([]report.Condition{
		{Type: report.DiskPressure, Status: true, Reason: "1 GiB of 20 GiB free"}, {Type: report.InodePressure, Reason: "most are free"},
	}).ExecX(ctx)
	if _, err := b.create(b.As(t, b.A.Member), resource.Slots{resource.CPU: 1000, resource.Mem: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	decisions, err := b.scheduler.Begin(ctx, b.epoch).Decide(ctx)
	if err != nil || len(decisions) != 1 || decisions[0].Placed() {
		t.Fatalf("%+v, %v", decisions, err)
	}
	want := []report.DroppedAgents{
		{Check: "cordoned", Count: 1, Why: []string{"new disks"}}, {Check: "draining", Count: 1, Why: []string{"new fans"}}, {Check: "lost", Count: 2},
		{Check: "unfit", Count: 1, Why: []string{all[4].Name + ": disk pressure, 1 GiB of 20 GiB free"}},
	}
	w := decisions[0].Waiting
	if diff := cmp.Diff(want, w.Dropped); diff != "" {
		t.Error(diff)
	}
	if want := "No machine can run the session: 1 is cordoned (new disks), 1 is draining (new fans), 2 are unreachable, " +
		"1 has a condition that keeps new sessions away (" + all[4].Name + ": disk pressure, 1 GiB of 20 GiB free)."; w.Summary != want {
		t.Errorf("%q, want %q", w.Summary, want)
	}
}
