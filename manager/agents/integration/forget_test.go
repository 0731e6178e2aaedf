package integration

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// download fetches the log of a session.
func download(t *testing.T, c *clustertest.Cluster, session uuid.UUID) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", c.Manager.URL+"/sessions/"+session.String()+"/log", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = c.Member.Header.Clone()
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

// copies creates further ended kernels of a session, on the agent's disk and in the database. The
// agent must be stopped.
func addEndedKernels(t *testing.T, c *clustertest.Cluster, n *clustertest.Node, k *ent.Kernel, count int) {
	t.Helper()
	record, err := os.ReadFile(filepath.Join(n.Dir, "kernels", k.ID.String(), "record.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []*ent.KernelCreate
	for i := range count {
		id := uuid.New()
		dir := filepath.Join(n.Dir, "kernels", id.String())
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

// Agents drop kernels that ended long ago, all of them and nothing else, and a request for their
// log is answered with the reason.
func TestAgentsForgetWhatEnded(t *testing.T) {
	c := clustertest.New(t, 1)
	n := c.Nodes[0]
	old, young := c.Create(t, clustertest.SessionInput(nil, "exit", "0")), c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
	c.WaitForEnd(t, old)
	c.WaitForEnd(t, young)
	if code, text := download(t, c, old); code != http.StatusOK {
		t.Errorf("log of an ended session: %d %s", code, text)
	}
	k := c.Client.Kernel.Query().Where(kernel.SessionID(old)).OnlyX(c.System(t))
	n.Stop()
	const copies = 300
	addEndedKernels(t, c, n, k, copies)
	c.Client.Kernel.Update().Where(kernel.SessionID(old)).SetTerminatedAt(time.Now().AddDate(0, 0, -8)).ExecX(c.System(t))
	c.Join(t, n, c.Manager)
	managertest.Eventually(t, "the agent forgets what ended 8 days ago", func() bool {
		left, err := os.ReadDir(filepath.Join(n.Dir, "kernels"))
		if err != nil {
			t.Fatal(err)
		}
		return len(left) == 1 && c.Client.Kernel.Query().Where(kernel.Forgotten(true)).CountX(c.System(t)) == copies+1
	})
	if code, text := download(t, c, old); code != http.StatusConflict || !strings.Contains(text, "logs are kept for 7 days after the end of a session") {
		t.Errorf("log that was removed: %d %s", code, text)
	}
	if code, text := download(t, c, young); code != http.StatusOK {
		t.Errorf("log that is kept: %d %s", code, text)
	}
	c.CheckInvariants(t, true)
}
