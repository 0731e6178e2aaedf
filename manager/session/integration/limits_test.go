package integration

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/manager/policy"
)

// bound attaches policies at every scope, with and without a narrower condition.
func bound(t *testing.T, c *clustertest.Cluster) {
	ctx := c.System(t)
	group := c.Client.ResourceGroup.Query().FirstX(ctx)
	for name, p := range map[string]struct {
		slots    resource.Slots
		sessions int
		to       func(*ent.PolicyAttachmentCreate)
	}{
		"domain": {resource.Slots{"cpu": 450}, 8, func(a *ent.PolicyAttachmentCreate) { a.SetDomainID(c.A.ID) }},
		"team":   {resource.Slots{"cpu": 400, "mem": 1 << 30}, 7, func(a *ent.PolicyAttachmentCreate) { a.SetProjectID(c.A.Project.ID) }},
		"person": {resource.Slots{"cpu": 300}, 5, func(a *ent.PolicyAttachmentCreate) { a.SetUserID(c.A.Member.ID) }},
		"narrow": {resource.Slots{"mem": 4 * 16 << 20}, 9, func(a *ent.PolicyAttachmentCreate) {
			a.SetUserID(c.A.Member.ID).SetResourceGroupID(group.ID).SetWithinProjectID(c.A.Project.ID)
		}},
	} {
		pol := c.Client.ResourcePolicy.Create().SetName(name).SetTotalSlots(p.slots).SetMaxSessions(p.sessions).SetMaxPendingSessions(30).SaveX(ctx)
		a := c.Client.PolicyAttachment.Create().SetPolicy(pol)
		p.to(a)
		a.ExecX(ctx)
	}
}

// audit compares, at one moment, the usage of the policies with the live allocations, and both with
// the limits.
func auditLimits(c *clustertest.Cluster, ctx context.Context, policies *policy.Service) error {
	tx, err := c.Client.BeginTx(ctx, &sql.TxOptions{Isolation: stdsql.LevelRepeatableRead})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	limits, err := policies.All(ctx, tx)
	if err != nil {
		return err
	}
	usage, err := policies.Usage(ctx, tx, limits)
	if err != nil {
		return err
	}
	live, err := tx.Allocation.Query().Where(allocation.FreedAtIsNil()).All(ctx)
	if err != nil {
		return err
	}
	for i := range limits {
		l := &limits[i]
		sum, holding := resource.Slots{}, map[uuid.UUID]bool{}
		for _, a := range live {
			if id := map[policy.Scope]uuid.UUID{policy.ScopeDomain: a.DomainID, policy.ScopeProject: a.ProjectID, policy.ScopeUser: a.OwnerID}[l.Scope]; id != l.ScopeID {
				continue
			}
			sum[a.Slot] += a.Amount
			holding[a.SessionID] = true
		}
		used, err := usage.Of(l)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(sum, used.Slots); diff != "" || used.Sessions != len(holding) {
			return fmt.Errorf("%s: %d sessions hold something, %d are counted %s", l.Policy, len(holding), used.Sessions, diff)
		}
		for slot, most := range l.TotalSlots {
			if sum[slot] > most || sum[slot] < 0 {
				return fmt.Errorf("%s: %d of %d %s", l.Policy, sum[slot], most, slot)
			}
		}
		if len(holding) > *l.MaxSessions {
			return fmt.Errorf("%s: %d of %d sessions", l.Policy, len(holding), *l.MaxSessions)
		}
	}
	return nil
}

// Sixteen clients send a thousand random operations: at no moment is more allocated than any policy
// allows, and the counted usage equals the allocations.
func TestLimitsUnderParallelClients(t *testing.T) {
	c := clustertest.New(t, 2)
	bound(t, c)
	ctx := c.System(t)
	policies := policy.New(policy.Config{Client: c.Client, Bus: event.New(nil, nil)})
	stop := make(chan struct{})
	var watcher, clients sync.WaitGroup
	watched := 0
	watcher.Go(func() {
		for {
			if err := auditLimits(c, ctx, policies); err != nil {
				t.Error(err)
				return
			}
			watched++
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	people := []*ent.User{c.A.Member, c.A.Lead}
	logins := []*managertest.Client{c.Manager.As(t, people[0]), c.Manager.As(t, people[1])}
	for i := range 16 {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 39))
			as := logins[i%2]
			var mine []uuid.UUID
			for range 63 { // 1,008 in all
				switch n := r.IntN(10); {
				case n < 4:
					id, errs := clustertest.TryCreate(t, as, clustertest.SessionInput(nil, "sleep", "600"))
					if len(errs) > 0 && errs.Code() != "RESOURCE_EXHAUSTED" {
						t.Error(errs)
					}
					if len(errs) == 0 {
						mine = append(mine, id)
					}
				case n < 8 && len(mine) > 0:
					k := r.IntN(len(mine))
					if errs := as.Ask(t, `mutation($id: ID!) { terminateSession(input: {id: $id, force: true}) { session { status } } }`,
						managertest.Vars{"id": mine[k]}, nil); len(errs) > 0 {
						t.Error(errs)
					}
					mine = append(mine[:k], mine[k+1:]...)
				default:
					list, err := policies.EffectiveLimits(c.World.World.As(t, people[i%2]), nil, nil, nil, nil)
					if err != nil || len(list) == 0 {
						t.Error(list, err)
					}
					for _, e := range list {
						if e.Used[0] == '-' || e.Assignable[0] == '-' {
							t.Errorf("%+v", e)
						}
					}
				}
			}
		})
	}
	clients.Wait()
	managertest.Eventually(t, "something runs, and nothing moves", func() bool {
		return c.Client.Session.Query().Where(session.StatusEQ(lifecycle.Running)).ExistX(ctx) && !c.Client.Session.Query().Where(session.StatusNotIn(lifecycle.Pending, lifecycle.Running), session.TerminatedAtIsNil()).ExistX(ctx)
	})
	close(stop)
	watcher.Wait()
	if watched < 10 {
		t.Errorf("looked only %d times", watched)
	}
	held := c.Client.Session.Query().Where(session.StatusEQ(lifecycle.Running)).CountX(ctx)
	t.Logf("%d sessions made, %d hold something at the end, audited %d times", c.Client.Session.Query().CountX(ctx), held, watched)
	if held == 0 {
		t.Error("nothing runs at the end: nothing is shown")
	}
	c.CheckInvariants(t, false)
}

// Of eight concurrent requests under a limit of four, at most four succeed.
func TestEightUnderALimitOfFour(t *testing.T) {
	c := clustertest.New(t, 1)
	ctx := c.System(t)
	pol := c.Client.ResourcePolicy.Create().SetName("four").SetTotalSlots(resource.Slots{"cpu": 200}).SaveX(ctx)
	c.Client.PolicyAttachment.Create().SetPolicy(pol).SetUser(c.A.Member).ExecX(ctx)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(nil, "sleep", "600")); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
	all.Wait()
	running := func() int { return c.Client.Session.Query().Where(session.StatusEQ(lifecycle.Running)).CountX(ctx) }
	managertest.Eventually(t, "four run and four say why they wait", func() bool {
		waiting := c.Client.Session.Query().Where(session.StatusEQ(lifecycle.Pending)).AllX(ctx)
		for _, w := range waiting {
			if w.Pending == nil || len(w.Pending.Limits) != 1 || w.Pending.Limits[0].Holder != c.A.Member.Username {
				return false
			}
		}
		return running() == 4 && len(waiting) == 4
	})
	// A lower limit ends no session, and running sessions count.
	pol.Update().SetTotalSlots(resource.Slots{"cpu": 100}).ExecX(ctx)
	managertest.Eventually(t, "those that wait say the lower limit", func() bool {
		for _, w := range c.Client.Session.Query().Where(session.StatusEQ(lifecycle.Pending)).AllX(ctx) {
			if w.Pending == nil || len(w.Pending.Limits) != 1 || w.Pending.Limits[0].Limit != "0.1" {
				return false
			}
		}
		return true
	})
	if n := running(); n != 4 {
		t.Errorf("%d run after the limit was lowered", n)
	}
}

// A session that can never fit is refused with every reason. The shortest limit of the current
// policies determines the lifetime of a session.
func TestRefusedAndOverdue(t *testing.T) {
	c := clustertest.New(t, 1)
	ctx := c.System(t)
	small := c.Client.ResourcePolicy.Create().SetName("small").SetTotalSlots(resource.Slots{"cpu": 100}).SetMaxPriority(20).SetMaxSessionLifetime(3600).SaveX(ctx)
	c.Client.PolicyAttachment.Create().SetPolicy(small).SetUser(c.A.Member).ExecX(ctx)
	house := c.Client.ResourcePolicy.Create().SetName("house").SetTotalSlots(resource.Slots{"mem": 1 << 20}).SaveX(ctx)
	c.Client.PolicyAttachment.Create().SetPolicy(house).SetDomainID(c.A.ID).ExecX(ctx)
	_, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.2", "mem": "16m"}, "priority": 30}, "sleep", "600"))
	want := "policy house of the domain a allows 1 MiB mem; 0 B in use and 16 MiB requested; " +
		"policy small of the user member-a allows 0.1 cpu; 0 in use and 0.2 requested; " +
		"policy small of the user member-a allows 20 priority; 0 in use and 30 requested"
	if len(errs) != 1 || errs.Code() != "RESOURCE_EXHAUSTED" || errs[0].Message != want {
		t.Errorf("got %v\nwant %s", errs, want)
	}
	if len(errs) == 1 {
		limit := func(policy, scope, holder, what, requested, limit string) map[string]string {
			return map[string]string{"policy": policy, "scope": scope, "holder": holder, "what": what, "used": "0",
				"requested": requested, "limit": limit, "resourceGroup": "", "withinProject": ""}
		}
		if diff := cmp.Diff([]map[string]string{
			limit("house", "DOMAIN", "a", "mem", "16777216", "1048576"),
			limit("small", "USER", "member-a", "cpu", "0.2", "0.1"),
			limit("small", "USER", "member-a", "priority", "30", "20"),
		}, errs[0].Extensions.Limits); diff != "" {
			t.Error(diff)
		}
	}
	house.Update().SetTotalSlots(resource.Slots{}).ExecX(ctx)
	runs := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, runs, lifecycle.Running)
	small.Update().SetMaxSessionLifetime(1).ExecX(ctx)
	s := c.WaitForEnd(t, runs)
	if *s.TerminationReason != session.TerminationReasonLifetime || s.Result != session.ResultFailure {
		t.Errorf("%s %s %s", s.Status, *s.TerminationReason, s.Result)
	}
	if n := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(runs), sessionevent.Code("lifetime"), sessionevent.ToStatusEQ(lifecycle.Terminating),
		sessionevent.Message("policy small of the user member-a allows a session to run for 1s")).CountX(ctx); n != 1 {
		t.Errorf("%d entries name the policy\n%s", n, c.History(t, runs))
	}
}
