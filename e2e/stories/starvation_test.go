package stories

import (
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// A session needs two accelerators of every agent, while other sessions keep coming that need two
// of one agent. Accelerators that become free are reserved for it. Meanwhile, sessions start that
// do not delay it, and the others start after it.
func TestNobodyStarves(t *testing.T) {
	operator := operator(t)
	lane := group(t, operator, "lane", nodes(), "--hold-after", "0s")
	u := platform.User(t)
	berth := u.Shell()
	t.Cleanup(func() { endAll(t, u) })
	ask := func(devices string, lifetime time.Duration) *client.Session {
		in := asks(lane, "mock.device", devices)
		if seconds := int(lifetime.Seconds()); seconds > 0 {
			in.Lifetime = &seconds
		}
		return u.Run(in)
	}

	var small, late []*client.Session
	for range 3 {
		small = append(small, ask("2", time.Hour))
	}
	for _, s := range small {
		u.Until(s.ID, "RUNNING")
	}
	in := asks(lane, "mock.device", "2")
	in.Kernels = new(3)
	big := u.Run(in)
	waits(t, u, big.ID, "ROOM")
	for _, s := range small[:2] {
		late = append(late, ask("2", 0))
		u.End(s.ID)
		heldBack(t, u, late[len(late)-1], big)
	}
	if why := waits(t, u, big.ID, "ROOM"); why.EstimatedStart == nil || why.Holds != 3 {
		t.Errorf("the big one starts at %v, and %d agents are held for it", why.EstimatedStart, why.Holds)
	}
	// One session ends before the last of the small ones. Another one uses the accelerators that
	// the large session leaves free.
	passes, beside := ask("2", 10*time.Minute), ask("1", 0)
	u.Until(passes.ID, "RUNNING")
	u.Until(beside.ID, "RUNNING")
	t.Logf("berth queue lane:\n%s", berth.Must("queue", "lane"))
	t.Logf("berth session why %s:\n%s", late[0].Name, berth.Must("session", "why", late[0].Name))

	u.End(passes.ID)
	u.End(small[2].ID)
	started := u.Until(big.ID, "RUNNING").StartedAt
	once(t, operator)
	u.End(big.ID)
	for _, s := range late {
		if after := u.Until(s.ID, "RUNNING").StartedAt; !after.After(*started) {
			t.Errorf("a session that came later started at %s, the big one at %s", after, started)
		}
	}
	once(t, operator)
}

// heldBack fails unless a session has to wait because capacity is reserved for another one.
func heldBack(t *testing.T, u *cluster.User, late, big *client.Session) {
	t.Helper()
	cluster.Eventually(t, "there is room, but it is not theirs", func() bool {
		why := waits(t, u, late.ID, "ORDER")
		return strings.Contains(why.Summary, "reserved for an earlier session") &&
			len(why.Ahead) > 0 && why.Ahead[0].Session != nil && why.Ahead[0].Session.ID == big.ID && why.Ahead[0].Holds == 3
	})
}
