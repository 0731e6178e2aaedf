package faults

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// ballast fills the agent's disk until the given number of bytes is free, and returns a function
// that frees the space.
func ballast(t *testing.T, p *cluster.Platform, left int64) (empty func()) {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(p.AgentDisk(), &fs); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.AgentDisk(), "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), 0, 0, int64(fs.Bavail)*fs.Bsize-left)
	if err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// crumbs uses all but a few hundred inodes of the agent's disk.
func crumbs(t *testing.T, p *cluster.Platform) (empty func()) {
	t.Helper()
	dir := filepath.Join(p.AgentDisk(), "crumbs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	for i := range fs.Ffree - 400 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// holds waits until a condition of the only agent has a status.
func holds(t *testing.T, u *cluster.User, kind string, want bool) (found client.Condition) {
	t.Helper()
	cluster.Eventually(t, fmt.Sprintf("%s is %t", kind, want), func() bool {
		agents, err := u.Agents(t.Context(), "")
		if err != nil || len(agents) != 1 {
			return false
		}
		for _, c := range agents[0].Conditions {
			if c.Type == kind && c.Status == want {
				found = c
				return true
			}
		}
		return false
	})
	return found
}

// waitsFor waits until the pending reason of a session names a check that ruled out the agent.
func waitsFor(t *testing.T, u *cluster.User, id, check, why string) {
	t.Helper()
	cluster.Eventually(t, "the session waits because the agent is "+check, func() bool {
		s := u.Show(id)
		if s.Status != "PENDING" || s.Pending == nil {
			return false
		}
		for _, d := range s.Pending.Dropped {
			if d.Check == check && strings.Contains(s.Pending.Summary, why) {
				return true
			}
		}
		return false
	})
}

// blameless fails if the history of a session contains a failed attempt.
func blameless(t *testing.T, u *cluster.User, id string) {
	t.Helper()
	for _, e := range u.Show(id).History {
		// A move from pending to pending means that the session waits again.
		if e.Result == "FAILURE" || e.Result == "RETRY" && e.FromStatus != nil && *e.FromStatus != "PENDING" {
			t.Errorf("the history counts a failure: %+v", e)
		}
	}
}

func metrics(t *testing.T, p *cluster.Platform) string {
	t.Helper()
	port, err := os.ReadFile(filepath.Join(p.Data(), "metrics.port"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://127.0.0.1:" + strings.TrimSpace(string(port)) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The disk of an agent is almost full. The agent accepts no new sessions and reports why, running
// sessions continue, and when space is free again, the waiting sessions start.
func TestDiskPressure(t *testing.T) {
	p := cluster.Start(t, cluster.Options{AgentDisk: "200m"})
	u, admin := p.User(t), p.UserAs(t, "SUPERADMIN")
	before := u.Run(cluster.Interactive())
	u.Until(before.ID, "RUNNING")
	for _, full := range []struct {
		kind, wantText string
		fill           func() func()
	}{
		{"disk_pressure", "disk pressure", func() func() { return ballast(t, p, 6<<20) }},
		{"inode_pressure", "inode pressure", func() func() { return crumbs(t, p) }},
	} {
		empty := full.fill()
		if c := holds(t, admin, full.kind, true); c.Reason == "" || c.Since.IsZero() {
			t.Errorf("the condition is %+v", c)
		}
		if out := admin.Shell().Must("agent", "ls"); !strings.Contains(out, full.wantText) {
			t.Errorf("berth agent ls:\n%s", out)
		}
		wait.Until(t, "the metrics report "+full.kind, func() bool { return strings.Contains(metrics(t, p), `condition="`+full.kind+`"} 1`) })
		waits := u.Run(cluster.Interactive())
		waitsFor(t, u, waits.ID, "unfit", full.wantText)
		if out, code := u.Exec(before.ID, "echo on"); out != "on\n" || code != 0 {
			t.Errorf("exec in a running session: %q, %d", out, code)
		}
		empty()
		holds(t, admin, full.kind, false)
		u.Until(waits.ID, "RUNNING")
		blameless(t, u, waits.ID)
		u.End(waits.ID)
	}
	u.End(before.ID)
}

// A disk becomes full while sessions start. None of them ends in the state ERROR, however long the
// disk stays full, and all run when space is free.
func TestDiskFullWhileStarting(t *testing.T) {
	p := cluster.Start(t, cluster.Options{AgentDisk: "200m"})
	u := p.User(t)
	empty := ballast(t, p, 0)
	var ids []string
	for range 3 {
		ids = append(ids, u.Run(cluster.Interactive()).ID)
	}
	for _, id := range ids {
		waitsFor(t, u, id, "unfit", "disk pressure")
	}
	empty()
	for _, id := range ids {
		u.Until(id, "RUNNING")
		blameless(t, u, id)
		u.End(id)
	}
}
