package manager_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/runtime/fake"
	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/fence"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/managertest"
)

func (c *cluster) containers(t *testing.T, n *node) int {
	t.Helper()
	list, err := fake.New(n.host, n.name).Containers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// loseAgent makes the last heartbeat of a stopped agent look old enough.
func (c *cluster) loseAgent(t *testing.T, n *node) {
	t.Helper()
	ago := time.Now().Add(-time.Hour)
	managertest.Eventually(t, "agent is lost", func() bool {
		// Repeated, because its last report may still be written.
		c.Client.Agent.Update().Where(entagent.Name(n.name), entagent.LastSeenAtGT(ago)).SetLastSeenAt(ago).ExecX(c.System(t))
		return c.Client.Agent.Query().Where(entagent.Name(n.name)).OnlyX(c.System(t)).Status == entagent.StatusLost
	})
}

func TestAgentGoesAndComesBack(t *testing.T) {
	c := newCluster(t, 1)
	n := c.nodes[0]
	stays := c.create(t, input(nil, "sleep", "600"))
	ends := c.create(t, input(nil, "sleep", "600"))
	goes := c.create(t, input(nil, "sleep", "600"))
	for _, id := range []uuid.UUID{stays, ends, goes} {
		c.reaches(t, id, lifecycle.Running)
	}
	n.stop()
	c.loseAgent(t, n)
	// Its end is requested while no manager can carry it out.
	if errs := c.end(t, ends, false); len(errs) > 0 {
		t.Fatal(errs)
	}
	// Its container vanishes while no manager watches.
	list, _ := fake.New(n.host, n.name).Containers(t.Context())
	for _, one := range list {
		if one.Labels()["berth.session"] == goes.String() {
			if err := one.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := c.session(t, stays); s.Status != lifecycle.Running {
		t.Errorf("%s while its agent is away", s.Status)
	}
	c.check(t, false)
	c.join(t, n, c.m)
	if s := c.over(t, ends); s.Status != lifecycle.Terminated {
		t.Errorf("asked to end: %s", s.Status)
	}
	if s := c.over(t, goes); *s.TerminationReason != session.TerminationReasonKernelLost {
		t.Errorf("lost container: %s %v", s.Status, *s.TerminationReason)
	}
	if s := c.session(t, stays); s.Status != lifecycle.Running {
		t.Errorf("%s after its agent came back", s.Status)
	}
	if k := c.containers(t, n); k != 1 {
		t.Errorf("%d containers, want the one that runs", k)
	}
	c.end(t, stays, true)
	c.over(t, stays)
	c.check(t, true)
}

// A session whose agent was lost during the start is placed elsewhere. When the agent is back with
// the container, only one of the two continues.
func TestStrayContainerEnds(t *testing.T) {
	c := newCluster(t, 2)
	id := c.create(t, input(env("FAKE_CREATE_DELAY", "300ms"), "sleep", "600"))
	c.reaches(t, id, lifecycle.Creating)
	k := c.Client.Kernel.Query().Where(kernel.SessionID(id)).WithAgent().OnlyX(c.System(t))
	first, second := c.nodes[0], c.nodes[1]
	if k.Edges.Agent.Name == second.name {
		first, second = second, first
	}
	managertest.Eventually(t, "container is there", func() bool { return c.containers(t, first) == 1 })
	c.reaches(t, id, lifecycle.Running)
	first.stop()
	c.loseAgent(t, first)
	// As it is when the answer was lost with the agent: still starting.
	ctx := c.System(t)
	c.Client.Session.UpdateOneID(id).SetStatus(lifecycle.Creating).ClearStartedAt().AddVersion(1).
		SetDeadlineAt(time.Now().Add(time.Hour)).ExecX(ctx)
	managertest.Eventually(t, "session runs elsewhere", func() bool {
		c.Client.Session.UpdateOneID(id).ClearRetryAt().ExecX(ctx)
		k := c.Client.Kernel.Query().Where(kernel.SessionID(id)).WithAgent().OnlyX(ctx)
		return k.Status == lifecycle.Running && k.Edges.Agent.Name == second.name
	})
	if c.containers(t, first) != 1 {
		t.Fatal("the first container is gone already; nothing is shown")
	}
	c.join(t, first, c.m)
	managertest.Eventually(t, "the first container ends", func() bool { return c.containers(t, first) == 0 })
	if s := c.session(t, id); s.Status != lifecycle.Running || c.containers(t, second) != 1 {
		t.Errorf("%s with %d containers\n%s", s.Status, c.containers(t, second), c.history(t, id))
	}
	c.Client.SessionEvent.Delete().ExecX(ctx) // its history was bent above
	c.end(t, id, true)
	c.over(t, id)
}

func TestAnotherManagerTakesOver(t *testing.T) {
	c := newCluster(t, 0)
	second := c.Start(t)
	n := &node{name: "a", dir: t.TempDir(), wires: newWires(len(c.nodes)), host: fake.NewHost(pulled())}
	c.nodes = append(c.nodes, n)
	c.join(t, n, c.m) // it learns of the other from the managers
	runs := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, runs, lifecycle.Running)
	old := c.Client.Fence.Query().Where(fence.Name(leader.FenceName)).OnlyX(c.System(t)).Epoch

	c.m.Stop()
	c.m = second
	c.as = second.As(t, c.A.Member)
	starts := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, starts, lifecycle.Running)
	if s := c.session(t, runs); s.Status != lifecycle.Running {
		t.Errorf("%s under the new leader", s.Status)
	}
	c.fencedOff(t, old, runs)
	for _, id := range []uuid.UUID{runs, starts} {
		c.end(t, id, true)
		c.over(t, id)
	}
	c.check(t, true)
}

// fencedOff shows that nothing is written under an epoch that is over (I9).
func (c *cluster) fencedOff(t *testing.T, old int64, id uuid.UUID) {
	t.Helper()
	ctx := c.System(t)
	now := c.Client.Fence.Query().Where(fence.Name(leader.FenceName)).OnlyX(ctx).Epoch
	if now <= old {
		t.Fatalf("epoch %d after %d", now, old)
	}
	for epoch, ok := range map[int64]bool{old: false, now: true, now + 1: false} {
		tx, err := c.Client.Tx(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := leader.Fence(ctx, tx, epoch); (err == nil) != ok || err != nil && !errdefs.IsAborted(err) {
			t.Errorf("epoch %d, present %d: %v", epoch, now, err)
		}
		_ = tx.Rollback()
	}
	lost := func(context.Context) error { return errdefs.ErrAborted }
	if _, err := leader.RaiseFence(ctx, c.Client, old, lost); !errdefs.IsAborted(err) {
		t.Errorf("an old leader takes the fence back: %v", err)
	}
	if got := c.Client.Fence.Query().Where(fence.Name(leader.FenceName)).OnlyX(ctx).Epoch; got != now {
		t.Errorf("an old leader moved the fence from %d to %d", now, got)
	}
}

// Many clients send requests to two managers at once: no limit is exceeded at any moment, and no
// confirmed session is lost.
func TestParallelCreatesKeepLimits(t *testing.T) {
	c := newCluster(t, 1)
	second := c.Start(t)
	ctx := c.System(t)
	pol := c.Client.ResourcePolicy.Create().SetName("small").SetTotalSlots(resource.Slots{"cpu": 300}).SetMaxSessions(5).SaveX(ctx)
	c.Client.PolicyAttachment.Create().SetPolicy(pol).SetUser(c.A.Member).ExecX(ctx)
	clients := []*managertest.Client{c.m.As(t, c.A.Member), second.As(t, c.A.Member), c.m.As(t, c.A.Lead), second.As(t, c.A.Lead)}
	turns := make([]chan struct{}, len(clients)) // a manager refuses more than 20 requests of one person at once
	for i := range turns {
		turns[i] = make(chan struct{}, 16)
	}

	watching, stop := make(chan struct{}), make(chan struct{})
	var wg, watcher sync.WaitGroup
	watcher.Go(func() {
		close(watching)
		for {
			var cpu int64
			var sessions = map[uuid.UUID]bool{}
			for _, a := range c.Client.Allocation.Query().Where(allocation.OwnerID(c.A.Member.ID), allocation.FreedAtIsNil()).AllX(ctx) {
				sessions[a.SessionID] = true
				if a.Slot == "cpu" {
					cpu += a.Amount
				}
			}
			if cpu > 300 || len(sessions) > 5 {
				t.Errorf("the policy allows 0.3 cpu in 5 sessions; held are %d/1000 in %d", cpu, len(sessions))
			}
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	<-watching
	var mu sync.Mutex
	byKey := map[string]map[uuid.UUID]bool{}
	for i := range 200 {
		wg.Go(func() {
			who := i % 4
			key := fmt.Sprintf("%d-%d", who/2, i/8) // requested up to four times, at both managers
			client := i%2 + who/2*2
			turns[client] <- struct{}{}
			id, errs := tryCreate(t, clients[client], input(managertest.Vars{"idempotencyKey": key}, "exit", "0"))
			<-turns[client]
			if len(errs) > 0 {
				t.Error(errs)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if byKey[key] == nil {
				byKey[key] = map[uuid.UUID]bool{}
			}
			byKey[key][id] = true
		})
	}
	wg.Wait()
	for key, ids := range byKey {
		if len(ids) != 1 {
			t.Errorf("key %s made %d sessions", key, len(ids))
		}
	}
	if n := c.Client.Session.Query().CountX(ctx); n != len(byKey) {
		t.Errorf("%d sessions for %d keys", n, len(byKey))
	}
	managertest.Eventually(t, "all end", func() bool {
		return !c.Client.Session.Query().Where(session.TerminatedAtIsNil()).ExistX(ctx)
	})
	close(stop)
	watcher.Wait()
	if bad := c.Client.Session.Query().Where(session.ResultNEQ(session.ResultSuccess)).AllX(ctx); len(bad) > 0 {
		t.Errorf("%d sessions did not succeed, the first\n%s", len(bad), c.history(t, bad[0].ID))
	}
	c.check(t, true)
}

func TestWhyASessionWaits(t *testing.T) {
	c := newCluster(t, 1)
	ctx := c.System(t)
	pol := c.Client.ResourcePolicy.Create().SetName("one").SetMaxSessions(1).SetMaxPendingSessions(2).SaveX(ctx)
	c.Client.PolicyAttachment.Create().SetPolicy(pol).SetUser(c.A.Member).ExecX(ctx)
	runs := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, runs, lifecycle.Running)
	first := c.create(t, input(nil, "exit", "0"))
	second := c.create(t, input(nil, "sleep", "600"))
	waits := func(id uuid.UUID, position int) func() bool {
		return func() bool {
			s := c.session(t, id)
			return s.Pending != nil && s.Pending.Position == position && len(s.Pending.Limits) == 1 && s.Pending.Limits[0].What == "sessions"
		}
	}
	managertest.Eventually(t, "the first waits", waits(first, 1))
	managertest.Eventually(t, "the second waits", waits(second, 2))
	if _, errs := tryCreate(t, c.as, input(nil, "exit", "0")); errs.Code() != "RESOURCE_EXHAUSTED" {
		t.Errorf("a third that waits: %s", errs)
	}
	c.end(t, runs, true)
	c.over(t, first)
	if s := c.reaches(t, second, lifecycle.Running); s.Pending != nil {
		t.Errorf("a running session waits for %v", s.Pending)
	}
	c.end(t, second, true)
	c.over(t, second)

	// Without a suitable agent, it waits for another reason.
	c.Client.PolicyAttachment.Delete().ExecX(ctx)
	c.Client.Agent.Update().SetSchedulable(false).ExecX(ctx)
	third := c.create(t, input(nil, "exit", "0"))
	managertest.Eventually(t, "the third waits", func() bool {
		s := c.session(t, third)
		return s.Pending != nil && len(s.Pending.Dropped) > 0 && s.Pending.Dropped[0].Check == "cordoned"
	})
	c.Client.Agent.Update().SetSchedulable(true).ExecX(ctx)
	if s := c.over(t, third); s.Result != session.ResultSuccess {
		t.Errorf("%s %s", s.Status, s.Result)
	}
	c.check(t, true)
}

// A session whose processes have ended is terminated when its machine is clean, even after the
// deadline of a forced end.
func TestTerminatedMeansClean(t *testing.T) {
	c := newCluster(t, 1)
	n := c.nodes[0]
	id := c.create(t, input(env("FAKE_FAIL_REMOVE", "5"), "sleep", "600"))
	c.reaches(t, id, lifecycle.Running)
	if errs := c.end(t, id, true); len(errs) > 0 {
		t.Fatal(errs)
	}
	managertest.Eventually(t, "its process has ended", func() bool {
		records, err := filepath.Glob(filepath.Join(n.dir, "kernels/*/record.json"))
		if err != nil || len(records) != 1 {
			t.Fatal(records, err)
		}
		text, _ := os.ReadFile(records[0])
		return strings.Contains(string(text), "still giving back")
	})
	managertest.Eventually(t, "the session is over", func() bool {
		c.Client.Session.Update().Where(session.ID(id), session.StatusEQ(lifecycle.Terminating)).
			SetDeadlineAt(c.A.CreatedAt).ExecX(c.System(t))
		return c.session(t, id).Status.Final()
	})
	if left := c.containers(t, n); left != 0 {
		t.Errorf("%d containers of the terminated session are left", left)
	}
	if s := c.session(t, id); s.Status != lifecycle.Terminated || s.StatusMessage != "ended by its user" {
		t.Errorf("%s: %s", s.Status, s.StatusMessage)
	}
	c.check(t, true)
}
