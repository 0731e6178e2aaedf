package faults

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/e2e/cluster"
)

// The only agent is drained: the owner is told until when the session may stay, a
// new one waits and knows why, and at the deadline the session ends. Undrained, the
// agent takes what waits.
func TestDrain(t *testing.T) {
	u, admin := platform.User(t), platform.UserAs(t, "superadmin")
	berth := admin.Shell()
	agents, err := admin.Agents(t.Context(), "")
	if err != nil || len(agents) != 1 {
		t.Fatalf("%d agents: %v", len(agents), err)
	}
	name := agents[0].Name
	stays := u.Run(cluster.Interactive())
	u.Until(stays.ID, "running")

	berth.Must("agent", "drain", name, "--deadline", "1h", "--then", "terminate", "--reason", "disk replacement")
	t.Cleanup(func() { berth.Run("agent", "undrain", name) })
	cluster.Eventually(t, "the owner is told", func() bool {
		return strings.Contains(u.Show(stays.ID).StatusMessage, "disk replacement")
	})
	if out := berth.Must("agent", "ls"); !strings.Contains(out, "draining") || !strings.Contains(out, "disk replacement") {
		t.Errorf("berth agent ls:\n%s", out)
	}
	waits := u.Run(cluster.Interactive())
	cluster.Eventually(t, "it says why it waits", func() bool {
		s := u.Show(waits.ID)
		if s.Status != "pending" {
			t.Fatalf("a session lands on a drained agent: %s", s.Status)
		}
		return s.Pending != nil && strings.Contains(s.Pending.Summary, "disk replacement")
	})
	if s := u.Show(stays.ID); s.Status != "running" {
		t.Errorf("an hour before the deadline the session is %s", s.Status)
	}
	berth.Must("agent", "drain", name, "--deadline", "0s", "--then", "terminate", "--wait")
	if s := u.Until(stays.ID, "terminated"); s.TerminationReason == nil || *s.TerminationReason != "drained" {
		t.Errorf("it ended for %v", s.TerminationReason)
	}
	if out := berth.Must("agent", "show", name); !strings.Contains(out, "drained") {
		t.Errorf("berth agent show:\n%s", out)
	}
	berth.Must("agent", "undrain", name)
	u.Until(waits.ID, "running")
	u.End(waits.ID)
	berth.Must("admin", "occupancy")
}
