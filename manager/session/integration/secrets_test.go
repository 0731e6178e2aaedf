package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const canary = "canary-5f0e2b"

// inClear counts the rows of sessions that contain the canary unencrypted.
func inClear(t *testing.T, c *clustertest.Cluster) int {
	t.Helper()
	rows, err := c.Client.QueryContext(t.Context(), `SELECT count(*) FROM sessions s WHERE s::text LIKE '%' || $1 || '%'`, canary)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := -1
	for rows.Next() {
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestEnvironmentsAreSealed(t *testing.T) {
	c := clustertest.New(t, 1)
	id := c.Create(t, clustertest.SessionInput(managertest.Vars{
		"environment": managertest.Vars{"API_KEY": canary, "EMPTY": ""}, "bootstrapScript": "export X=" + canary,
	}, "run"))
	c.WaitFor(t, id, lifecycle.Running)
	if n := inClear(t, c); n != 0 {
		t.Errorf("%d rows hold the value", n)
	}
	records, err := filepath.Glob(filepath.Join(c.Nodes[0].Dir, "kernels", "*", "record.json"))
	if err != nil || len(records) == 0 {
		t.Fatalf("no records: %v", err)
	}
	for _, path := range records {
		if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(canary)) {
			t.Errorf("%s holds the value, %v", path, err)
		}
	}
	lead, err := c.Client.Role.Create().SetName("reader").SetPermissions(access.Permissions{access.Session: {access.Read}}).Save(c.System(t))
	if err != nil {
		t.Fatal(err)
	}
	c.Client.RoleGrant.Create().SetRole(lead).SetUser(c.A.Loner).SetScope("domain").SetScopeID(c.A.ID).ExecX(c.System(t))
	hidden := map[string]string{"API_KEY": "", "EMPTY": ""}
	for name, who := range map[string]struct {
		as   *managertest.Client
		want map[string]string
	}{
		"the owner":         {c.Member, map[string]string{"API_KEY": canary, "EMPTY": ""}},
		"a monitor":         {c.Manager.As(t, c.Monitor), hidden},
		"a role that reads": {c.Manager.As(t, c.A.Loner), hidden},
	} {
		var got struct {
			Node struct{ Environment map[string]string }
		}
		who.as.Must(t, `query($id: ID!) { node(id: $id) { ... on Session { environment } } }`, managertest.Vars{"id": id}, &got)
		if d := cmp.Diff(who.want, got.Node.Environment); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	// The values reach the container: here, they make its creation fail.
	bad := c.Create(t, clustertest.SessionInput(managertest.Vars{"environment": managertest.Vars{fake.FailCreate: "told-to-fail"}}, "run"))
	managertest.Eventually(t, "the value reached the container", func() bool {
		return bytes.Contains([]byte(c.Session(t, bad).StatusMessage), []byte("told-to-fail"))
	})
}

// TestSessionsStoredTogether creates sessions at the same time, so that many are stored in one
// transaction. Each session has its own environment and script, and its row is equal to the row of
// a session that is stored alone.
func TestSessionsStoredTogether(t *testing.T) {
	c := clustertest.New(t, 0)
	const sessions = 40
	alone := c.Create(t, clustertest.SessionInput(clustertest.Environment("API_KEY", "alone"), "run"))
	made := make([]uuid.UUID, sessions)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			in := clustertest.SessionInput(clustertest.Environment("API_KEY", fmt.Sprint(i)), "run")
			in["bootstrapScript"] = fmt.Sprintf("export N=%d", i)
			made[i] = c.Create(t, in)
		})
	}
	wg.Wait()
	want := storedRows(t, c, alone)
	for i, id := range made {
		var got struct {
			Node struct{ Environment map[string]string }
		}
		c.Member.Must(t, `query($id: ID!) { node(id: $id) { ... on Session { environment } } }`, managertest.Vars{"id": id}, &got)
		if d := cmp.Diff(map[string]string{"API_KEY": fmt.Sprint(i)}, got.Node.Environment); d != "" {
			t.Errorf("session %d (-want +got):\n%s", i, d)
		}
		if d := cmp.Diff(want, storedRows(t, c, id)); d != "" {
			t.Errorf("rows of session %d (-alone +together):\n%s", i, d)
		}
	}
}

// storedRows returns the rows of a new session as JSON, without the fields that differ for each
// session.
func storedRows(t *testing.T, c *clustertest.Cluster, id uuid.UUID) (list []string) {
	t.Helper()
	rows, err := c.Client.QueryContext(t.Context(), `SELECT (to_jsonb(s) - '{id,created_at,name,secrets_sealed,pending,status_message,version}'::text[])::text FROM sessions s WHERE id = $1
UNION ALL SELECT (to_jsonb(k) - '{id,created_at,session_id}'::text[])::text FROM kernels k WHERE session_id = $1
UNION ALL SELECT (to_jsonb(e) - '{id,at,session_id}'::text[])::text FROM session_events e WHERE session_id = $1 AND message = 'queued'`, id)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		list = append(list, text)
	}
	if err := rows.Err(); err != nil || len(list) != 3 {
		t.Fatalf("%d rows, %v", len(list), err)
	}
	return list
}

// Values that an older version of the manager stored unencrypted are encrypted by the next leader.
func TestOldEnvironmentsAreSealed(t *testing.T) {
	c := clustertest.New(t, 0)
	id := c.Create(t, clustertest.SessionInput(nil, "run"))
	c.Manager.Stop()
	c.Client.Session.UpdateOneID(id).SetEnvironment(map[string]string{"API_KEY": canary}).SetBootstrapScript(canary).ExecX(c.System(t))
	if n := inClear(t, c); n != 1 {
		t.Fatalf("%d rows hold the value before", n)
	}
	c.Manager = c.Start(t)
	managertest.Eventually(t, "the row is sealed", func() bool { return inClear(t, c) == 0 })
	var got struct {
		Node struct{ Environment map[string]string }
	}
	c.Manager.As(t, c.A.Member).Must(t, `query($id: ID!) { node(id: $id) { ... on Session { environment } } }`, managertest.Vars{"id": id}, &got)
	if got.Node.Environment["API_KEY"] != canary {
		t.Errorf("the owner reads %v", got.Node.Environment)
	}
}
