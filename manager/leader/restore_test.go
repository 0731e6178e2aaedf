package leader_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const readRecovery = `{ cluster { recovery { since reason } } }`

// mode returns why the cluster is in recovery mode; empty when it is not.
func mode(t *testing.T, c *clustertest.Cluster) string {
	t.Helper()
	var got struct {
		Cluster struct{ Recovery *struct{ Reason string } }
	}
	c.Manager.As(t, c.Superadmin).Must(t, readRecovery, nil, &got)
	if got.Cluster.Recovery == nil {
		return ""
	}
	return got.Cluster.Recovery.Reason
}

func setMode(t *testing.T, c *clustertest.Cluster, on bool) {
	t.Helper()
	c.Manager.As(t, c.Superadmin).Must(t, `mutation($on: Boolean!) { setRecovery(input: {on: $on}) { recovery { reason } } }`, managertest.Vars{"on": on}, nil)
}

// rewind restores the database to its state before a session was created.
func rewind(t *testing.T, c *clustertest.Cluster, newer uuid.UUID) (kernelID uuid.UUID) {
	t.Helper()
	ctx := c.System(t)
	k := c.Client.Kernel.Query().Where(kernel.SessionID(newer)).OnlyX(ctx)
	c.Client.Allocation.Delete().Where(allocation.SessionID(newer)).ExecX(ctx)
	c.Client.SessionEvent.Delete().Where(sessionevent.SessionID(newer)).ExecX(ctx)
	c.Client.Kernel.DeleteOne(k).ExecX(ctx)
	c.Client.Session.DeleteOneID(newer).ExecX(ctx)
	led := c.Client.ClusterIdentity.Query().OnlyX(ctx).LedAt
	c.Client.ClusterIdentity.Update().SetLedAt(led.Add(-time.Hour)).ExecX(ctx)
	return k.ID
}

// A database that was restored from a backup is older than the running containers. The leader
// notices this before it does anything, and nothing ends until an administrator turns the recovery
// mode off; unknown containers stay until an administrator ends them.
func TestRestoredDatabaseEndsNoNewerSession(t *testing.T) {
	c := clustertest.New(t, 1)
	ctx, n := c.System(t), c.Nodes[0]
	ended := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
	c.WaitForEnd(t, ended)
	older := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, older, lifecycle.Running)
	newer := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, newer, lifecycle.Running)
	c.Manager.Stop()
	id := rewind(t, c, newer)
	// This session ran at the time of the backup.
	c.Client.Session.UpdateOneID(ended).SetStatus(lifecycle.Running).ClearTerminatedAt().ClearTerminationReason().ExecX(ctx)
	c.Client.Kernel.Update().Where(kernel.SessionID(ended)).SetStatus(lifecycle.Running).ClearTerminatedAt().ClearExitCode().ExecX(ctx)
	c.Client.Allocation.Update().Where(allocation.SessionID(ended)).ClearFreedAt().ExecX(ctx)
	c.Manager = c.Start(t)
	c.Member = c.Manager.As(t, c.A.Member)
	n.Stop()
	c.Join(t, n, c.Manager)

	managertest.Eventually(t, "the leader notices it", func() bool { return strings.Contains(mode(t, c), "restored from a backup") })
	managertest.Eventually(t, "the leader has looked", func() bool { return c.DriftMetric(t)["orphan"] == "1" && c.DriftMetric(t)["missing"] == "1" })
	if errs := c.Member.Ask(t, `{ cluster { recovery { since } } }`, nil, nil); len(errs) > 0 {
		t.Errorf("members do not see the mode: %v", errs)
	}
	waiting := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	var look struct{ OccupancyAudit clustertest.Occupancy }
	c.Manager.As(t, c.Superadmin).Must(t, `{ occupancyAudit `+clustertest.OccupancyFields+` }`, nil, &look)
	for _, d := range look.OccupancyAudit.Drift {
		if d.Kind == "ORPHAN" && (*d.Kernel != id || d.Owner != c.A.Member.Email || d.Project != c.A.Project.Name || !strings.Contains(d.Next, "--repair")) {
			t.Errorf("the unknown container: %+v", d)
		}
		if d.Kind == "MISSING" && (*d.Session != ended || !strings.Contains(d.Next, "ends")) {
			t.Errorf("the session that has ended: %+v", d)
		}
	}
	errs := c.Manager.As(t, c.Superadmin).Ask(t, `mutation { auditOccupancy { audit { at } } }`, nil, nil)
	if errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("mending in recovery mode: %v", errs)
	}
	if left := c.CountContainers(t, n); left != 2 {
		t.Errorf("%d containers are left, want 2", left)
	}
	for id, want := range map[uuid.UUID]lifecycle.Status{ended: lifecycle.Running, older: lifecycle.Running, waiting: lifecycle.Pending} {
		if s := c.Session(t, id); s.Status != want {
			t.Errorf("session %s is %s, want %s\n%s", id, s.Status, want, c.History(t, id))
		}
	}
	if errs := c.Terminate(t, older, false); len(errs) > 0 {
		t.Fatal(errs)
	}
	c.WaitForEnd(t, older)

	setMode(t, c, false)
	c.WaitFor(t, waiting, lifecycle.Running)
	c.WaitForEnd(t, ended)
	if left := c.CountContainers(t, n); left != 2 {
		t.Errorf("after recovery mode %d containers are left, want the unknown one and one that has started", left)
	}
	for action, rows := range map[string]int{"enterRecovery": 1, "setRecovery": 1} {
		if got := c.Client.AuditEntry.Query().Where(auditentry.Action(action)).CountX(ctx); got != rows {
			t.Errorf("%d rows of %s in the audit log", got, action)
		}
	}
	managertest.Eventually(t, "an administrator has the unknown container ended", func() bool {
		c.AuditOccupancy(t)
		return c.CountContainers(t, n) == 1
	})
	c.WaitForNoDrift(t)
}

// If etcd was lost too, the reports of the agents show that the database is older.
func TestAgentsKnowNewerSessions(t *testing.T) {
	c := clustertest.New(t, 1)
	newer := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, newer, lifecycle.Running)
	c.Manager.Stop()
	rewind(t, c, newer)
	if _, err := c.Etcd(t).Delete(t.Context(), "/berth/led"); err != nil {
		t.Fatal(err)
	}
	c.Manager = c.Start(t)
	c.Member = c.Manager.As(t, c.A.Member)
	if mode := mode(t, c); mode != "" {
		t.Errorf("before the agent is there: %s", mode)
	}
	c.Nodes[0].Stop()
	c.Join(t, c.Nodes[0], c.Manager)
	managertest.Eventually(t, "the leader notices it", func() bool {
		return strings.HasPrefix(mode(t, c), "agent a runs containers that are newer than the database (1)")
	})
	if left := c.CountContainers(t, c.Nodes[0]); left != 1 {
		t.Errorf("%d containers are left", left)
	}
}

// A restart without a restore does not turn the mode on, and an administrator can turn it on.
func TestRecoveryModeIsTurnedOn(t *testing.T) {
	c := clustertest.New(t, 1)
	runs := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, runs, lifecycle.Running)
	c.Manager.Stop()
	hasNotes(t, c)
	c.Manager = c.Start(t)
	c.Member = c.Manager.As(t, c.A.Member)
	c.Nodes[0].Stop()
	c.Join(t, c.Nodes[0], c.Manager)
	if mode := mode(t, c); mode != "" {
		t.Errorf("after a restart: %s", mode)
	}
	setMode(t, c, true)
	if mode := mode(t, c); mode != "turned on by "+c.Superadmin.Email {
		t.Errorf("the reason is %q", mode)
	}
	if errs := c.Member.Ask(t, `mutation { setRecovery(input: {on: false}) { recovery { since } } }`, nil, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member turns it off: %v", errs)
	}
	managertest.Eventually(t, "the metric shows recovery mode", func() bool {
		return strings.Contains(c.Manager.Scrape(t), "berth_recovery_mode 1\n")
	})
	setMode(t, c, false)
	managertest.Eventually(t, "the metric shows the end of recovery mode", func() bool {
		return strings.Contains(c.Manager.Scrape(t), "berth_recovery_mode 0\n")
	})
}

// hasNotes checks that the last note of the time is in the database and in etcd alike.
func hasNotes(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	row := c.Client.ClusterIdentity.Query().OnlyX(c.System(t))
	resp, err := c.Etcd(t).Get(t.Context(), "/berth/led")
	if err != nil || len(resp.Kvs) != 1 || row.LedAt == nil {
		t.Fatalf("led at %v, in etcd %v, %v", row.LedAt, resp, err)
	}
}
