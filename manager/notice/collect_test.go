package notice_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/manager/notice"
)

// An event has one notice, however often managers read it and whenever its transaction commits.
func TestEventsAreNeitherLostNorDoubled(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.now = time.Time{} // the real time, because the database compares it with the time of transactions
	const difference = 20 * time.Millisecond
	manager := func() func() {
		s := b.service(t, nil)
		s.Hurry(difference)
		c := s.Collector()
		return func() {
			t.Helper()
			if err := c.Collect(b.ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := manager()
	early := b.session(b.A.Member)
	first()
	fails(b.ctx, b.Client.SessionEvent, early)
	first()
	if list := b.notices(t, b.A.Member); len(list) != 1 || list[0].Kind != noticekind.SessionFailed || *list[0].SubjectID != early.ID || list[0].Parameters["reason"] != "out of memory" {
		t.Fatalf("%v", list)
	}
	// The transaction of this event is open while later events are read, and longer than the clocks can differ.
	late := b.session(b.A.Member)
	tx, err := b.Client.Tx(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	fails(b.ctx, tx.SessionEvent, late)
	for range 3 {
		fails(b.ctx, b.Client.SessionEvent, b.session(b.A.Member))
		time.Sleep(2 * difference)
		first()
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	// Another manager leads from here: it begins at the stored position.
	second := manager()
	for range 3 {
		second()
		first()
	}
	subjects := map[uuid.UUID]int{}
	for _, n := range b.notices(t, b.A.Member) {
		subjects[*n.SubjectID] += n.Count
	}
	if len(subjects) != 5 {
		t.Errorf("%d sessions have notices, want 5", len(subjects))
	}
	for s, n := range subjects {
		if n != 1 {
			t.Errorf("session %s has %d notices", s, n)
		}
	}
	if n := len(b.notices(t, b.A.Lead)) + len(b.notices(t, b.Superadmin)); n != 0 {
		t.Errorf("others see %d notices", n)
	}
}

// People who are not active get nothing, and everyone gets what they chose.
func TestWhoGetsNotices(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service(t, nil)
	b.A.Lead.Update().SetStatus(user.StatusInactive).ExecX(b.ctx)
	b.Client.NoticeSetting.Create().SetUserID(b.A.Admin.ID).SetRoutes(noticekind.Choice{noticekind.SessionFailed: {}}).ExecX(b.ctx)
	if err := s.Post(b.ctx, failures(1, b.A.Member, b.A.Lead, b.A.Admin)...); err != nil {
		t.Fatal(err)
	}
	if got := b.Client.Notice.Query().AllX(b.ctx); len(got) != 1 || *got[0].UserID != b.A.Member.ID {
		t.Errorf("%v", got)
	}
}

// Ten thousand sessions of an array are a few notices, with the number of all.
func TestArraysAreGrouped(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service(t, nil)
	list := failures(10_000, b.A.Member)
	for len(list) > 0 {
		if err := s.Post(b.ctx, list[:2500]...); err != nil {
			t.Fatal(err)
		}
		list = list[2500:]
		b.pass(10 * time.Second)
	}
	total := 0
	got := b.notices(t, b.A.Member)
	for _, n := range got {
		total += n.Count
	}
	if len(got) != 6 || total != 10_000 {
		t.Errorf("%d notices stand for %d events", len(got), total)
	}
}

// A condition has one notice until it ends and begins again, and goes to superadmins.
func TestConditions(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service(t, nil)
	a := b.Client.Agent.Create().SetName("a1").SetResourceGroup(b.group).SaveX(b.ctx)
	status := func(st agent.Status) {
		a.Update().SetStatus(st).ExecX(b.ctx)
		for range 2 {
			if err := s.Watch(b.ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, st := range []agent.Status{agent.StatusLost, agent.StatusAlive, agent.StatusLost, agent.StatusTerminated} {
		status(st)
	}
	var kinds []noticekind.Kind
	for _, n := range b.notices(t, b.Superadmin) {
		kinds = append(kinds, n.Kind)
	}
	if len(kinds) != 3 || kinds[0] != noticekind.AgentLost || kinds[1] != noticekind.AgentBack || kinds[2] != noticekind.AgentLost {
		t.Errorf("%v", kinds)
	}
	if n := len(b.notices(t, b.A.Admin)); n != 0 {
		t.Errorf("a domain admin got %d notices", n)
	}
	quota(t, b)
}

// quota checks the two thresholds, without a second notice while the use varies around one.
func quota(t *testing.T, b *bed) {
	t.Helper()
	s := b.service(t, nil)
	proxy := b.Client.StorageProxy.Create().SetName("p").SetLastSeenAt(b.clock()).SaveX(b.ctx)
	v := b.Client.Volume.Create().SetName("fast").SetProxy(proxy).SaveX(b.ctx)
	q := b.Client.QuotaScope.Create().SetKind("user").SetHolderID(b.A.Member.ID).SetDomainID(b.A.Domain.ID).SetVolume(v).SetLimitBytes(100).SaveX(b.ctx)
	for _, step := range []struct {
		used int64
		want int
	}{{50, 0}, {86, 1}, {83, 1}, {88, 1}, {100, 2}, {97, 2}, {100, 2}, {70, 2}, {90, 3}} {
		q.Update().SetUsedBytes(step.used).ExecX(b.ctx)
		if err := s.Watch(b.ctx); err != nil {
			t.Fatal(err)
		}
		if got := len(b.notices(t, b.A.Member)); got != step.want {
			t.Fatalf("%d notices at %d %%, want %d", got, step.used, step.want)
		}
	}
}

// A threshold of a budget has one notice, in the transaction of the caller.
func TestBudget(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service(t, nil)
	for range 2 {
		tx, err := b.Client.Tx(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		done, err := s.BudgetReached(b.ctx, tx, budget(b.A.Member))
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		done()
	}
	if list := b.notices(t, b.A.Member); len(list) != 1 || noticekind.Text(noticekind.English, list[0].Kind, list[0].Parameters, 1) != "80 % of the budget training is used: 8 EUR of 10 EUR." {
		t.Errorf("%v", list)
	}
}

func budget(u *ent.User) notice.BudgetUse {
	return notice.BudgetUse{Key: "b 2026-11 80", Name: "training", Users: []uuid.UUID{u.ID}, Percent: 80, Spent: "8 EUR", Limit: "10 EUR"}
}
