package stories

import (
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// An agent with sessions of three groups is killed. One session waits for the agent, one fails, and
// one starts again on another agent, although all of their containers continue. When the agent is
// back, only the container of the session that waited remains.
func TestLostAgent(t *testing.T) {
	operator := operator(t)
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	lost := platform.Agents[2]
	sessions := map[string]*client.Session{}
	for _, policy := range []string{"wait", "fail", "reschedule"} {
		// The agent is in each group in turn. Its sessions stay in their own groups.
		id := group(t, operator, "lost-"+policy, []string{lost.Name()}, "--lost-policy", policy, "--lost-after", "0s")
		s := u.Run(asks(id, "mock.shares", "0.5"))
		u.Until(s.ID, "RUNNING")
		sessions[policy] = s
	}
	move(operator, "lost-reschedule", "node-1")
	stays, fails, goes := sessions["wait"], sessions["fail"], sessions["reschedule"]
	began := u.Show(stays.ID).StartedAt
	once(t, operator)

	if err := lost.Kill(); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the agent is lost", func() bool {
		return strings.Contains(operator.Must("agent", "show", lost.Name()), "lost")
	})
	if s := u.Until(fails.ID, "ERROR"); s.TerminationReason == nil || *s.TerminationReason != "AGENT_LOST" {
		t.Errorf("it failed for %v", s.TerminationReason)
	}
	cluster.Eventually(t, "the session runs elsewhere", func() bool {
		s := u.Show(goes.ID)
		return s.Status == "RUNNING" && s.Kernels[0].Agent.Name == "node-1"
	})
	if s := u.Show(stays.ID); s.Status != "RUNNING" {
		t.Errorf("the session that waits is %s: %s", s.Status, s.StatusMessage)
	}
	t.Logf("berth agent ls:\n%s", operator.Must("agent", "ls"))
	t.Logf("berth session ls -a:\n%s", u.Shell().Must("session", "ls", "-a"))
	for s, want := range map[*client.Session][]string{stays: {lost.Name()}, fails: {lost.Name()}, goes: {"node-1", lost.Name()}} {
		if there := where(t, u, s); !slices.Equal(there, want) {
			t.Errorf("%s lives on %v, want %v: nothing is shown", s.Name, there, want)
		}
	}

	if err := lost.Start(); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the agent is back", func() bool {
		return strings.Contains(operator.Must("agent", "ls"), "alive") && !strings.Contains(operator.Must("agent", "ls"), "lost ")
	})
	once(t, operator)
	for s, want := range map[*client.Session][]string{stays: {lost.Name()}, fails: nil, goes: {"node-1"}} {
		if there := where(t, u, s); !slices.Equal(there, want) {
			t.Errorf("%s lives on %v, want %v", s.Name, there, want)
		}
	}
	if s := u.Show(stays.ID); s.Status != "RUNNING" || !s.StartedAt.Equal(*began) {
		t.Errorf("the session that waited is %s, started %s, at first %s", s.Status, s.StartedAt, began)
	}
	for _, s := range []*client.Session{stays, goes} {
		if out, code := u.Exec(s.ID, "echo here"); out != "here\n" || code != 0 {
			t.Errorf("exec in %s: %q, %d", s.Name, out, code)
		}
	}
}

// where returns the agents on which containers of a session live.
func where(t *testing.T, u *cluster.User, s *client.Session) []string {
	t.Helper()
	found, err := platform.Containers()
	if err != nil {
		t.Fatal(err)
	}
	there := found[u.Show(s.ID).Kernels[0].ID]
	slices.Sort(there)
	return there
}
