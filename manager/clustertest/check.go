package clustertest

import (
	"database/sql"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/managertest"
)

// CheckInvariants checks every invariant that can be seen from outside at any time. With still, it
// also checks that nothing is running.
func (c *Cluster) CheckInvariants(t *testing.T, still bool) {
	t.Helper()
	ctx := c.System(t)
	// All rows are read in one snapshot, because sessions change state during the check.
	moment, err := c.Client.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = moment.Rollback() }()
	// I1: no device has more allocated than its capacity.
	devices := moment.Device.Query().AllX(ctx)
	live := moment.Allocation.Query().AllX(ctx)
	used := map[uuid.UUID]resource.Slots{}
	perSession := map[uuid.UUID]int{}
	for _, a := range live {
		if a.FreedAt != nil {
			continue
		}
		if used[a.DeviceID] == nil {
			used[a.DeviceID] = resource.Slots{}
		}
		used[a.DeviceID][a.Slot] += a.Amount
		perSession[a.SessionID]++
	}
	for _, d := range devices {
		for slot, n := range used[d.ID] {
			if n > d.Capacity[slot] {
				t.Errorf("I1: device %s holds %d of %d %s", d.DeviceID, n, d.Capacity[slot], slot)
			}
		}
	}
	for _, s := range moment.Session.Query().AllX(ctx) {
		// I4: an ended session has no allocations.
		if s.Status.Final() && perSession[s.ID] > 0 {
			t.Errorf("I4: session %s is %s and holds %d allocations", s.Name, s.Status, perSession[s.ID])
		}
		if s.Status.Final() != (s.TerminatedAt != nil) {
			t.Errorf("session %s is %s, terminated at %v", s.Name, s.Status, s.TerminatedAt)
		}
		c.checkHistory(t, s)
		if still && !s.Status.Final() {
			t.Errorf("I3: session %s is still %s", s.Name, s.Status)
		}
	}
	if !still {
		return
	}
	for _, n := range c.Nodes { // I4 on the machines
		managertest.Eventually(t, "machine "+n.Name+" is clean", func() bool {
			list, err := fake.New(n.Host, n.Name).Containers(t.Context())
			return err == nil && len(list) == 0 && n.Network.count() == 0
		})
	}
}

// checkHistory is I8: the history is a path of the state machine that ends
// where the session is.
func (c *Cluster) checkHistory(t *testing.T, s *ent.Session) {
	t.Helper()
	events := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(s.ID)).Order(sessionevent.ByAt(), sessionevent.ByID()).AllX(c.System(t))
	at := lifecycle.Status("")
	for _, e := range events {
		if e.ToStatus == nil {
			continue
		}
		to := *e.ToStatus
		if at != "" && at != to && !lifecycle.CanMove(at, to) || at == "" && to != lifecycle.Pending {
			t.Errorf("I8: session %s went from %q to %s\n%s", s.Name, at, to, c.History(t, s.ID))
		}
		at = to
	}
	if now := c.Session(t, s.ID); now.Version != s.Version {
		return // its state changed during the check
	}
	if at != s.Status {
		t.Errorf("I8: session %s is %s, its history ends with %s", s.Name, s.Status, at)
	}
}
