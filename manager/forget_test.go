package manager_test

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/managertest"
)

// download fetches the log of a session.
func (c *cluster) download(t *testing.T, session uuid.UUID) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", c.m.URL+"/sessions/"+session.String()+"/log", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = c.as.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// copies makes as many more ended kernels of a session, on the agent's disk and in the
// database. The agent has to be away.
func (c *cluster) copies(t *testing.T, n *node, k *ent.Kernel, count int) {
	t.Helper()
	record, err := os.ReadFile(filepath.Join(n.dir, "kernels", k.ID.String(), "record.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []*ent.KernelCreate
	for i := range count {
		id := uuid.New()
		dir := filepath.Join(n.dir, "kernels", id.String())
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(record), k.ID.String(), id.String())
		if err := os.WriteFile(filepath.Join(dir, "record.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, c.Client.Kernel.Create().SetID(id).SetRole(kernel.RoleSub).SetIndex(i+1).SetSessionID(k.SessionID).
			SetOwnerID(k.OwnerID).SetProjectID(k.ProjectID).SetDomainID(k.DomainID).SetSlots(k.Slots).
			SetStatus(lifecycle.Terminated).SetTerminatedAt(*k.TerminatedAt).SetAgentID(*k.AgentID))
	}
	c.Client.Kernel.CreateBulk(rows...).ExecX(c.System(t))
}

// Agents forget what ended long ago, all of it and nothing else, and the log of it is
// answered with what became of it.
func TestAgentsForgetWhatEnded(t *testing.T) {
	c := newCluster(t, 1)
	n := c.nodes[0]
	old, young := c.create(t, input(nil, "exit", "0")), c.create(t, input(nil, "exit", "0"))
	c.over(t, old)
	c.over(t, young)
	if code, text := c.download(t, old); code != http.StatusOK {
		t.Errorf("log of an ended session: %d %s", code, text)
	}
	k := c.Client.Kernel.Query().Where(kernel.SessionID(old)).OnlyX(c.System(t))
	n.stop()
	const copies = 300
	c.copies(t, n, k, copies)
	c.Client.Kernel.Update().Where(kernel.SessionID(old)).SetTerminatedAt(time.Now().AddDate(0, 0, -8)).ExecX(c.System(t))
	c.join(t, n, c.m)
	managertest.Eventually(t, "the agent forgets what ended 8 days ago", func() bool {
		left, err := os.ReadDir(filepath.Join(n.dir, "kernels"))
		if err != nil {
			t.Fatal(err)
		}
		return len(left) == 1 && c.Client.Kernel.Query().Where(kernel.Forgotten(true)).CountX(c.System(t)) == copies+1
	})
	if code, text := c.download(t, old); code != http.StatusConflict || !strings.Contains(text, "logs are kept for 7 days after the end of a session") {
		t.Errorf("log that was removed: %d %s", code, text)
	}
	if code, text := c.download(t, young); code != http.StatusOK {
		t.Errorf("log that is kept: %d %s", code, text)
	}
	c.check(t, true)
}

// Ended sessions stay, with what their use is summed from, unless an operator limits
// that; then all of an old session goes, and nothing of another.
func TestEndedSessionsAreKeptAsLongAsSet(t *testing.T) {
	c := newCluster(t, 1)
	ctx := c.System(t)
	old, young, runs := c.create(t, input(nil, "exit", "0")), c.create(t, input(nil, "exit", "0")), c.create(t, input(nil, "sleep", "600"))
	c.over(t, old)
	c.over(t, young)
	c.reaches(t, runs, lifecycle.Running)
	ago := time.Now().AddDate(0, 0, -100)
	if _, err := c.Client.ExecContext(ctx, "UPDATE sessions SET created_at = $1 WHERE id IN ($2, $3)", ago, old, runs); err != nil {
		t.Fatal(err)
	}
	c.Client.Session.UpdateOneID(old).SetTerminatedAt(ago).ExecX(ctx)
	sweep := func() int {
		audit.New(audit.Config{Client: c.Client, Logger: slog.Default()}).Sweep(t.Context(), time.Now())
		return c.Client.Session.Query().CountX(ctx)
	}
	if n := sweep(); n != 3 {
		t.Errorf("%d sessions are left without a limit", n)
	}
	c.m.As(t, c.Superadmin).Must(t, `mutation { setRetention(input: {category: SESSIONS, days: 90}) { retention { days } } }`, nil, nil)
	if n := sweep(); n != 2 || c.Client.Session.Query().Where(session.ID(old)).ExistX(ctx) {
		t.Errorf("%d sessions are left", n)
	}
	if n := c.Client.Kernel.Query().CountX(ctx); n != 2 {
		t.Errorf("%d kernels are left", n)
	}
	if c.Client.Allocation.Query().Where(allocation.SessionID(old)).ExistX(ctx) || !c.Client.Allocation.Query().Where(allocation.SessionID(young)).ExistX(ctx) {
		t.Error("allocations of another session than the old one are gone")
	}
	if len(c.history(t, young)) == 0 {
		t.Error("the history of a young session is gone")
	}
}
