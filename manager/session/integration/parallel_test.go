package integration

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// Many clients send requests to two managers at once: no limit is exceeded at any moment, and no
// confirmed session is lost.
func TestParallelCreatesKeepLimits(t *testing.T) {
	c := clustertest.New(t, 1)
	second := c.Start(t)
	ctx := c.System(t)
	pol := c.Client.ResourcePolicy.Create().SetName("small").SetTotalSlots(resource.Slots{"cpu": 300}).SetMaxSessions(5).SaveX(ctx)
	c.Client.PolicyAttachment.Create().SetPolicy(pol).SetUser(c.A.Member).ExecX(ctx)
	clients := []*managertest.Client{c.Manager.As(t, c.A.Member), second.As(t, c.A.Member), c.Manager.As(t, c.A.Lead), second.As(t, c.A.Lead)}
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
			id, errs := clustertest.TryCreate(t, clients[client], clustertest.SessionInput(managertest.Vars{"idempotencyKey": key}, "exit", "0"))
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
		t.Errorf("%d sessions did not succeed, the first\n%s", len(bad), c.History(t, bad[0].ID))
	}
	c.CheckInvariants(t, true)
}

// A request that began while its user was in the project cannot create a session after they have
// left: it is created before, or not at all.
func TestSessionInAProjectOneHasLeft(t *testing.T) {
	c := clustertest.New(t, 0)
	ctx := c.System(t)
	leave, err := c.Client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leave.Rollback() }()
	leave.Membership.Delete().Where(membership.UserID(c.A.Member.ID), membership.ProjectID(c.A.Project.ID)).ExecX(ctx)
	done := make(chan managertest.Errors, 1)
	go func() { // the requests arrive before the removal from the project is committed
		_, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(managertest.Vars{"project": c.A.Project.ID}, "sleep", "600"))
		done <- errs
	}()
	waits := func() bool {
		rows, err := c.Client.QueryContext(ctx, "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		return rows.Next()
	}
	var errs managertest.Errors
	answered := false
	managertest.Eventually(t, "the request waits for the one that leaves", func() bool {
		select {
		case errs = <-done:
			answered = true
			return true
		default:
			return waits()
		}
	})
	if err := leave.Commit(); err != nil {
		t.Fatal(err)
	}
	if !answered {
		errs = <-done
	}
	if errs.Code() != "NOT_FOUND" {
		t.Errorf("%q, want NOT_FOUND: %s", errs.Code(), errs)
	}
	if _, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(managertest.Vars{"project": c.A.Project.ID}, "sleep", "600")); errs.Code() != "NOT_FOUND" {
		t.Errorf("after he left: %s", errs)
	}
	if n := c.Client.Session.Query().Where(session.OwnerID(c.A.Member.ID)).CountX(ctx); n > 0 {
		t.Errorf("%d sessions are there", n)
	}
}

// Many concurrent requests create and end fractions that exceed the limit only together: at no time
// is more allocated than the policy allows.
func TestFractionsUnderALimit(t *testing.T) {
	c := clustertest.New(t, 1)
	ctx := c.System(t)
	const most = 400 // thousandths
	pol := c.Client.ResourcePolicy.Create().SetName("two fifths").SetTotalSlots(resource.Slots{"cpu": most}).SaveX(ctx)
	c.Client.PolicyAttachment.Create().SetPolicy(pol).SetUser(c.A.Member).ExecX(ctx)
	held := func() (sum int64) {
		for _, a := range c.Client.Allocation.Query().AllX(ctx) {
			if a.FreedAt == nil && a.Slot == "cpu" {
				sum += a.Amount
			}
		}
		return sum
	}
	stop := make(chan struct{})
	var watcher, all sync.WaitGroup
	watcher.Go(func() {
		for {
			if n := held(); n > most {
				t.Errorf("%d thousandths are held, at most %d", n, most)
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	for i := range 8 {
		all.Go(func() {
			for j := range 4 {
				amount := []string{"0.1", "0.133", "0.034", "0.4", "0.067", "0.25"}[(i*5+j)%6]
				id, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": amount, "mem": "16m"}}, "sleep", "600"))
				if len(errs) > 0 {
					t.Error(errs)
					return
				}
				if j < 3 {
					managertest.Eventually(t, "it is decided on", func() bool {
						s := c.Session(t, id)
						return s.Status != lifecycle.Pending || s.Pending != nil
					})
					c.Terminate(t, id, true)
				}
			}
		})
	}
	all.Wait()
	managertest.Eventually(t, "what fits of the rest is held", func() bool { return held() >= most/2 })
	close(stop)
	watcher.Wait()
	c.CheckInvariants(t, false)
}
