package stories

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// One agent is drained so that its session moves, one so that its session ends, and one is
// cordoned. Owners are notified of the deadline, no new session is placed there, waiting sessions
// have a reason, and an agent that is uncordoned gets waiting sessions.
func TestDrain(t *testing.T) {
	operator := operator(t)
	group := group(t, operator, "workshop", nodes(), "--strategy", "dispersed")
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	moves, ends := u.Run(asks(group)), u.Run(asks(group))
	u.Until(moves.ID, "RUNNING")
	u.Until(ends.ID, "RUNNING")
	from, last := on(t, u, moves.ID), on(t, u, ends.ID)
	if from == last {
		t.Fatalf("both are on %s", from)
	}
	to := other(from, last)
	t.Cleanup(func() {
		operator.Run("agent", "undrain", from, last)
		operator.Run("agent", "uncordon", to)
	})
	drain := func(node, deadline, then string, more ...string) {
		t.Helper()
		operator.Must(append([]string{"agent", "drain", node, "--deadline", deadline, "--then", then, "--reason", "disk replacement"}, more...)...)
	}

	drain(from, "1h", "reschedule")
	drain(last, "1h", "terminate")
	for _, s := range []*client.Session{moves, ends} {
		cluster.Eventually(t, "the owner is notified", func() bool {
			return strings.Contains(u.Show(s.ID).StatusMessage, "disk replacement")
		})
	}
	lands := u.Run(asks(group))
	u.Until(lands.ID, "RUNNING")
	if at := on(t, u, lands.ID); at != to {
		t.Errorf("a new session lands on %s", at)
	}
	u.End(lands.ID)

	operator.Must("agent", "cordon", to, "--reason", "new cables")
	text := operator.Must("agent", "ls")
	mustContain(t, text, "alive, draining for", "disk replacement", "alive, cordoned: new cables")
	t.Logf("berth agent ls:\n%s", text)
	late := u.Run(asks(group))
	waits(t, u, late.ID, "ROOM")
	text = u.Shell().Must("session", "why", late.Name)
	mustContain(t, text, "1 is cordoned (new cables), 2 are draining (disk replacement)")
	t.Logf("berth session why %s:\n%s", late.Name, text)
	for _, s := range []*client.Session{moves, ends} {
		if now := u.Show(s.ID); now.Status != "RUNNING" {
			t.Errorf("an hour before the deadline %s is %s", s.Name, now.Status)
		}
	}

	drain(last, "0s", "terminate", "--wait")
	if s := u.Until(ends.ID, "TERMINATED"); s.TerminationReason == nil || *s.TerminationReason != "DRAINED" {
		t.Errorf("it ended for %v", s.TerminationReason)
	}
	drain(from, "0s", "reschedule", "--wait")
	waits(t, u, moves.ID, "ROOM")
	mustContain(t, operator.Must("agent", "show", from), "drained")
	once(t, operator)

	operator.Must("agent", "uncordon", to)
	for _, s := range []*client.Session{moves, late} {
		u.Until(s.ID, "RUNNING")
		if at := on(t, u, s.ID); at != to {
			t.Errorf("%s runs on %s", s.Name, at)
		}
	}
	once(t, operator)
}

// other returns an agent that is not among the given ones.
func other(than ...string) string {
	for _, n := range nodes() {
		if !strings.Contains(strings.Join(than, " "), n) {
			return n
		}
	}
	return ""
}
