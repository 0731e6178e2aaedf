package stories

import (
	"cmp"
	"testing"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
	"github.com/berthhq/berth/internal/resource"
)

// The leader is killed while sessions run and start. The other manager continues to schedule, and
// no session runs twice.
func TestLeaderKilled(t *testing.T) {
	operator := operator(t)
	group := group(t, operator, "fleet", nodes(), "--strategy", "dispersed")
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	leader := platform.Leader(t)
	var all []*client.Session
	for range 3 {
		all = append(all, u.Run(asks(group, "mock.shares", "0.25")))
		u.Until(all[len(all)-1].ID, "RUNNING")
	}
	for range 9 { // the sessions are in different stages of their start
		all = append(all, u.Run(asks(group, "mock.shares", "0.25")))
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	t.Cleanup(func() {
		if err := leader.Start(); err != nil {
			t.Error(err)
		}
	})
	first := u.Run(asks(group, "mock.shares", "0.25"))
	u.Until(first.ID, "RUNNING")
	t.Logf("%s, which led, was killed; a session that was requested later runs after %s", leader.Name(), time.Since(killed).Round(10*time.Millisecond))
	for _, s := range append(all, first) {
		u.Until(s.ID, "RUNNING")
	}
	if now := platform.Leader(t); now == leader {
		t.Errorf("%s leads, and is dead", now.Name())
	}
	if n := len(placed(t)); n != len(all)+1 {
		t.Errorf("%d sessions have %d kernels", len(all)+1, n)
	}
	once(t, operator)
	cluster.Eventually(t, "devices are allocated as requested", func() bool { return held(t) == "3.25" })
}

// held returns the allocated amounts of all accelerators.
func held(t *testing.T) string {
	t.Helper()
	agents, err := platform.Admin(t).Agents(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, a := range agents {
		amount, err := resource.Parse("mock.shares", cmp.Or(a.Occupied["mock.shares"], "0"))
		if err != nil {
			t.Fatal(err)
		}
		sum += amount
	}
	return resource.Format("mock.shares", sum)
}
