package stories

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

var platform *cluster.Spread

// The platform has eight accelerators on three agents.
func TestMain(m *testing.M) {
	os.Exit(cluster.MainSpread(m, cluster.SpreadOptions{Managers: 2, Agents: []int{3, 3, 2}}, &platform))
}

// operator returns the command line of an administrator of the cluster.
func operator(t *testing.T) *cluster.Shell {
	t.Helper()
	return platform.UserAs(t, "SUPERADMIN").Shell()
}

// group creates a resource group for everyone, with these agents, and returns its id.
func group(t *testing.T, berth *cluster.Shell, name string, agents []string, options ...string) string {
	t.Helper()
	var made client.Group
	read(t, berth.Must(append([]string{"admin", "group", "create", name, "--public", "-o", "json"}, options...)...), &made)
	move(berth, name, agents...)
	return made.ID
}

// move moves agents into a group, together with their running sessions.
func move(berth *cluster.Shell, group string, agents ...string) {
	berth.Must(append([]string{"agent", "move", "--force", "--group", group}, agents...)...)
}

// read decodes the output of a command with -o json.
func read(t *testing.T, text string, out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}

// nodes returns the names of all agents.
func nodes() (all []string) {
	for _, a := range platform.Agents {
		all = append(all, a.Name())
	}
	return all
}

// asks returns the request of an idle session in a group, given by its ID.
func asks(group string, slots ...string) client.CreateSessionInput {
	in := cluster.Batch("exec sleep 86400")
	in.ResourceGroup = group
	in.Slots = cluster.Slots(append([]string{"cpu", "0.05", "mem", "32m"}, slots...)...)
	return in
}

// on returns the agent that a session of one kernel is placed on.
func on(t *testing.T, u *cluster.User, session string) string {
	t.Helper()
	k := u.Show(session).Kernels
	if len(k) != 1 || k[0].Agent == nil {
		t.Fatalf("session %s is nowhere", session)
	}
	return k[0].Agent.Name
}

// waits fails unless the session waits. It returns the pending reason as soon as there is one.
func waits(t *testing.T, u *cluster.User, session string, stage client.Enum) *client.Advice {
	t.Helper()
	var why *client.Advice
	var last client.PendingReport
	var err error
	t.Cleanup(func() {
		if t.Failed() && (last.Stage != stage || err != nil) {
			t.Logf("session %s waits for %s, not for %s: %s; the last error: %v", session, last.Stage, stage, last.Summary, err)
		}
	})
	cluster.Eventually(t, "it is known that the session waits for "+stage.String(), func() bool {
		s := u.Show(session)
		if s.Status != "PENDING" {
			t.Fatalf("session %s is %s: %s", s.Name, s.Status, s.StatusMessage)
		}
		if s.Pending == nil {
			return false
		}
		if last = *s.Pending; last.Stage != stage {
			return false
		}
		why, _, err = u.Why(t.Context(), session)
		return err == nil && why != nil && why.Stage == stage
	})
	return why
}

// endAll ends all sessions of a user, so that the next scenario begins without sessions.
func endAll(t *testing.T, u *cluster.User) {
	t.Helper()
	list, err := u.Sessions(context.Background(), client.SessionFilter{Live: true, Owner: u.ID})
	if err != nil {
		t.Error(err)
	}
	for _, s := range list {
		if _, err := u.TerminateSession(context.Background(), s.ID, true); err != nil {
			t.Errorf("end %s: %v", s.Name, err)
		}
	}
	cluster.Eventually(t, "all sessions have ended", func() bool {
		list, err := u.Sessions(context.Background(), client.SessionFilter{Live: true, Owner: u.ID})
		return err == nil && len(list) == 0
	})
}

// mustContain fails unless the text contains all parts.
func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
}
