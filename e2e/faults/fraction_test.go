package faults

import (
	"math/big"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

func shares(amount string) client.CreateSessionInput {
	in := cluster.Interactive()
	in.Slots = cluster.Slots("cpu", "0.1", "mem", "64m", "mock.shares", amount)
	return in
}

// device returns the accelerator of a session.
func device(t *testing.T, u *cluster.User, session string) string {
	t.Helper()
	for _, a := range u.Show(session).Kernels[0].Allocations {
		if a.Slot == "mock.shares" && a.FreedAt == nil && a.Device != nil {
			return a.Device.ID
		}
	}
	t.Fatalf("session %s holds no accelerator", session)
	return ""
}

// Two halves share one accelerator, and a session of a whole one gets the other. The next session
// waits with a reason, and starts later.
func TestFractions(t *testing.T) {
	u := platform.User(t)
	var halves [2]*client.Session
	for i := range halves {
		halves[i] = u.Run(shares("0.5"))
		u.Until(halves[i].ID, "RUNNING")
	}
	whole := u.Run(shares("1"))
	u.Until(whole.ID, "RUNNING")
	shared := device(t, u, halves[0].ID)
	if other := device(t, u, halves[1].ID); other != shared {
		t.Errorf("the halves are on %s and %s, want one accelerator", shared, other)
	}
	if other := device(t, u, whole.ID); other == shared {
		t.Errorf("the whole one is on %s, which is full", other)
	}
	if out, code := u.Exec(halves[0].ID, "env | grep -i mock"); code != 0 {
		t.Errorf("the session does not see its accelerator: %s", out)
	}

	waits, next := u.Run(shares("0.3")), u.Run(shares("0.3"))
	var report *client.PendingReport
	cluster.Eventually(t, "a reason to wait", func() bool {
		a, b := u.Show(waits.ID), u.Show(next.ID)
		if a.Status != "PENDING" || b.Status != "PENDING" {
			t.Fatalf("the sessions that do not fit are %s and %s", a.Status, b.Status)
		}
		report = a.Pending
		return report != nil && b.Pending != nil && report.Position == 1 && b.Pending.Position == 2
	})
	if len(report.Dropped) != 1 || report.Dropped[0].Slot != "mock.shares" || report.Dropped[0].Count != 1 || report.Agents != 1 || report.Summary == "" {
		t.Errorf("reason: %+v", report)
	}
	if n := report.Nearest; n == nil || n.Slot != "mock.shares" || n.Requested != "0.3" || n.Free != "0" {
		t.Errorf("nearest fit: %+v", n)
	}
	u.End(halves[1].ID)
	u.Until(waits.ID, "RUNNING")
	if on := device(t, u, waits.ID); on != shared {
		t.Errorf("starts on %s, want %s, where there is room", on, shared)
	}
	if s := u.Show(next.ID); s.Status != "PENDING" {
		t.Errorf("0.2 are free, but the session that wants 0.3 is %s", s.Status)
	}
	u.End(waits.ID)
	u.Until(next.ID, "RUNNING")

	charged := charge(t, u.Show(halves[1].ID).Usage)
	u.End(halves[0].ID)
	u.End(whole.ID)
	u.End(next.ID)
	before := sum(t, u)
	if charged.Sign() <= 0 || before.Cmp(charged) <= 0 {
		t.Errorf("charged %s for one session, %s for all", charged.FloatString(3), before.FloatString(3))
	}
	restart(t, "--stop-sessions")
	if after := sum(t, u); after.Cmp(before) != 0 {
		t.Errorf("charged %s after a restart, %s before", after.FloatString(3), before.FloatString(3))
	}
	occupied(t, u)
}

// occupied fails if any accelerator is allocated.
func occupied(t *testing.T, u *cluster.User) {
	t.Helper()
	var out struct {
		Devices struct {
			Edges []struct {
				Node struct {
					DeviceID string            `json:"deviceId"`
					Occupied map[string]string `json:"occupied"`
					Capacity map[string]string `json:"capacity"`
				}
			}
		}
	}
	u.Query(`{ devices(where: {plugin: "mock"}) { edges { node { deviceId occupied capacity } } } }`, nil, &out)
	if len(out.Devices.Edges) != 2 {
		t.Errorf("%d accelerators, want 2", len(out.Devices.Edges))
	}
	for _, e := range out.Devices.Edges {
		for slot, amount := range e.Node.Occupied {
			if amount != "0" {
				t.Errorf("%s of %s of %s is allocated to no session", amount, slot, e.Node.DeviceID)
			}
		}
		if e.Node.Capacity["mock.shares"] != "1" {
			t.Errorf("%s offers %v", e.Node.DeviceID, e.Node.Capacity)
		}
	}
}

func charge(t *testing.T, usage []client.UsageEntry) *big.Rat {
	t.Helper()
	for _, e := range usage {
		if e.Slot == "mock.shares" {
			r, ok := new(big.Rat).SetString(e.SlotSeconds)
			if !ok {
				t.Fatalf("charged %q", e.SlotSeconds)
			}
			return r
		}
	}
	t.Fatalf("nothing charged for accelerators: %v", usage)
	return nil
}

func sum(t *testing.T, u *cluster.User) *big.Rat {
	t.Helper()
	all, err := u.Usage(t.Context(), client.UsageFilter{User: u.ID})
	if err != nil {
		t.Fatalf("read usage: %v", err)
	}
	return charge(t, all)
}
