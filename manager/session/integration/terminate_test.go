package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// A session whose processes have ended becomes terminated only when its machine is cleaned up, even
// after the deadline of a forced end.
func TestTerminatedMeansClean(t *testing.T) {
	c := clustertest.New(t, 1)
	n := c.Nodes[0]
	id := c.Create(t, clustertest.SessionInput(clustertest.Environment("FAKE_FAIL_REMOVE", "5"), "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Running)
	if errs := c.Terminate(t, id, true); len(errs) > 0 {
		t.Fatal(errs)
	}
	managertest.Eventually(t, "its process has ended", func() bool {
		records, err := filepath.Glob(filepath.Join(n.Dir, "kernels/*/record.json"))
		if err != nil || len(records) != 1 {
			t.Fatal(records, err)
		}
		text, _ := os.ReadFile(records[0])
		return strings.Contains(string(text), "still cleaning up")
	})
	managertest.Eventually(t, "the session is over", func() bool {
		c.Client.Session.Update().Where(session.ID(id), session.StatusEQ(lifecycle.Terminating)).
			SetDeadlineAt(c.A.CreatedAt).ExecX(c.System(t))
		return c.Session(t, id).Status.Final()
	})
	if left := c.CountContainers(t, n); left != 0 {
		t.Errorf("%d containers of the terminated session are left", left)
	}
	if s := c.Session(t, id); s.Status != lifecycle.Terminated || s.StatusMessage != "ended by its user" {
		t.Errorf("%s: %s", s.Status, s.StatusMessage)
	}
	c.CheckInvariants(t, true)
}
