package idle

import (
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/ent/idlechecker"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/session"
)

func network(name string, timeout int) CreateIdleCheckerInput {
	return CreateIdleCheckerInput{Name: name, Kind: idlechecker.KindNetwork, Timeout: timeout}
}

func TestWarnedThenEnded(t *testing.T) {
	b := newBed(t)
	b.checker(t, network("unused", 3600))
	id := b.running(t, "one", nil)
	b.pass(t, minutes(54))
	b.runs(t, id)
	if s := b.get(id); s.Idle == nil || !s.Idle.EndsAt.Equal(at(60)) || !s.Idle.WarnedAt.IsZero() || b.warnings(id) != 0 {
		t.Fatalf("before the warning: %+v, %d warnings", s.Idle, b.warnings(id))
	}
	version := b.get(id).Version
	b.pass(t, minutes(5))
	if s := b.get(id); !s.Idle.WarnedAt.Equal(at(55)) || !s.Idle.EndsAt.Equal(at(60)) || b.warnings(id) != 1 || s.Version != version+1 {
		t.Fatalf("after the warning: %+v, %d warnings, version %d", s.Idle, b.warnings(id), s.Version-version)
	}
	b.pass(t, 50*time.Second)
	b.runs(t, id)
	b.pass(t, 10*time.Second)
	if s := b.ended(t, id); !strings.Contains(s.StatusMessage, "unused") || !strings.Contains(s.StatusMessage, "1 h") {
		t.Errorf("ended because %q", s.StatusMessage)
	}
}

// An open terminal at a manager other than the leader keeps a session in use, even if managers or
// stores are unavailable meanwhile.
func TestUseAtAnyManager(t *testing.T) {
	b := newBed(t)
	b.checker(t, network("unused", 600))
	other, third := b.manager(), b.manager()
	open, typed, left, still := b.running(t, "open", nil), b.running(t, "traffic", nil), b.running(t, "left", nil), b.running(t, "still", nil)
	terminal := other.Enter(b.ctx, open, true)
	port := third.Enter(b.ctx, typed, false)
	silent := third.Enter(b.ctx, still, false)
	defer silent.Leave()
	short := other.Enter(b.ctx, left, true)
	notes := func() { other.Note(b.ctx); third.Note(b.ctx); port.Moved() }
	b.pass(t, minutes(8), notes)
	short.Leave()
	b.redis.FlushAll(b.ctx)
	b.pass(t, minutes(5), notes)
	b.runs(t, open)
	b.runs(t, typed)
	b.runs(t, left)
	b.ended(t, still) // a connection without data is not activity
	b.takeOver(t)
	b.pass(t, minutes(5)+20*time.Second, notes)
	b.ended(t, left)
	b.runs(t, open)
	b.runs(t, typed)
	// The manager with the terminal dies, so its last stored time counts.
	b.pass(t, minutes(9))
	b.runs(t, open)
	b.pass(t, minutes(2))
	b.ended(t, open)
	terminal.Leave()
}

// The leader ends a session without having read a time of use that another manager has stored
// since.
func TestUseAtTheLastMoment(t *testing.T) {
	b := newBed(t)
	b.checker(t, network("unused", 600))
	id := b.running(t, "one", nil)
	b.pass(t, minutes(9))
	s := b.get(id)
	known := b.now
	b.now = b.now.Add(time.Second)
	b.manager().Enter(b.ctx, id, true)
	if err := b.lead.Sessions.EndIdle(b.ctx, b.epoch, s, known, "x"); err == nil {
		t.Error("a session was ended that somebody had just entered")
	}
	b.runs(t, id)
	if err := b.lead.Sessions.EndIdle(b.ctx, b.epoch-1, s, b.now, "x"); err == nil {
		t.Error("a leader that was replaced ended a session")
	}
	b.runs(t, id)
}

func TestLeadersChange(t *testing.T) {
	b := newBed(t)
	b.checker(t, network("unused", 3600))
	id := b.running(t, "one", nil)
	b.pass(t, minutes(56))
	was := b.get(id)
	b.now = b.now.Add(30 * time.Second)
	b.takeOver(t)
	b.pass(t, minutes(2))
	if s := b.get(id); !s.Idle.EndsAt.Equal(was.Idle.EndsAt) || !s.Idle.WarnedAt.Equal(was.Idle.WarnedAt) || b.warnings(id) != 1 {
		t.Errorf("a new leader reports %+v, the previous one %+v", s.Idle, was.Idle)
	}
	// Two hours without a leader do not count as idle.
	b.now = b.now.Add(2 * time.Hour)
	b.takeOver(t)
	b.pass(t, minutes(1))
	b.runs(t, id)
	b.pass(t, minutes(7))
	b.ended(t, id)
}

// After Redis has lost the time of the last check, all sessions count as used.
func TestUnknownIsUse(t *testing.T) {
	b := newBed(t)
	b.checker(t, network("unused", 3600))
	id := b.running(t, "one", nil)
	b.pass(t, minutes(59))
	b.redis.FlushAll(b.ctx)
	b.takeOver(t)
	b.pass(t, minutes(54))
	b.runs(t, id)
	b.pass(t, minutes(8))
	b.ended(t, id)
}

// The times of use of a session are deleted some time after its end.
func TestUseOfEndedSessionsIsForgotten(t *testing.T) {
	b := newBed(t)
	b.checker(t, network("unused", 3600))
	gone, here := b.running(t, "gone", nil), b.running(t, "here", nil)
	b.lead.Enter(b.ctx, gone, false).Leave()
	b.lead.Enter(b.ctx, here, false).Leave()
	b.now = b.now.Add(minutes(1))
	b.lead.Note(b.ctx)
	b.pass(t, minutes(1))
	b.Client.Session.UpdateOneID(gone).SetStatus(lifecycle.Terminated).SetTerminatedAt(b.now).ExecX(b.ctx)
	if n := b.Client.IdleActivity.Query().CountX(b.ctx); n != 2 {
		t.Fatalf("%d are known before", n)
	}
	b.pass(t, minutes(61))
	if left := b.Client.IdleActivity.Query().OnlyX(b.ctx); left.SessionID != here {
		t.Errorf("of %s is left", left.SessionID)
	}
}

func TestExemptDisabledUnbound(t *testing.T) {
	b := newBed(t)
	c := b.checker(t, network("unused", 600))
	root := b.As(t, b.Superadmin)
	exempt, plain := b.running(t, "exempt", nil), b.running(t, "plain", nil)
	b.pass(t, minutes(6))
	set := func(on bool) {
		if _, err := b.lead.Sessions.SetSessionIdleExempt(b.As(t, b.A.Admin), session.SetSessionIdleExemptInput{ID: exempt, Exempt: on}); err != nil {
			t.Fatal(err)
		}
	}
	set(true)
	late := session.IdleNote{Session: b.get(exempt), Idle: b.get(plain).Idle, Warning: "too late"}
	if err := b.lead.Sessions.NoteIdle(b.ctx, b.epoch, []session.IdleNote{late}); err != nil {
		t.Fatal(err)
	}
	if s := b.get(exempt); s.Idle != nil || !s.IdleExempt || b.warnings(exempt) != 1 {
		t.Errorf("exempt: %+v, %d warnings", s.Idle, b.warnings(exempt))
	}
	if _, err := b.lead.UpdateIdleChecker(root, UpdateIdleCheckerInput{ID: c.ID, Enabled: new(bool)}); err != nil {
		t.Fatal(err)
	}
	b.pass(t, minutes(20))
	if s := b.get(plain); s.Idle != nil {
		t.Errorf("of a disabled checker is left: %+v", s.Idle)
	}
	on := true
	if _, err := b.lead.UpdateIdleChecker(root, UpdateIdleCheckerInput{ID: c.ID, Enabled: &on}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.lead.DetachIdleChecker(root, DetachIdleCheckerInput{Checker: c.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.lead.AttachIdleChecker(root, AttachIdleCheckerInput{Checker: c.ID, Project: &b.B.Project.ID}); err != nil {
		t.Fatal(err)
	}
	b.pass(t, minutes(20))
	b.runs(t, plain)
	for _, in := range []AttachIdleCheckerInput{{Checker: c.ID, Domain: &b.A.Domain.ID}, {Checker: c.ID, ResourceGroup: &b.group.ID}} {
		if _, err := b.lead.AttachIdleChecker(root, in); err != nil {
			t.Fatal(err)
		}
	}
	b.pass(t, minutes(4)+50*time.Second)
	b.runs(t, plain) // long overdue, but warned first
	b.pass(t, 10*time.Second)
	b.ended(t, plain)
	b.runs(t, exempt)
	set(false)
	b.pass(t, minutes(6))
	b.ended(t, exempt)
}

func TestPolicysIdleTimeout(t *testing.T) {
	b := newBed(t)
	short := b.Client.ResourcePolicy.Create().SetName("short").SetIdleTimeout(600).SaveX(b.ctx)
	long := b.Client.ResourcePolicy.Create().SetName("long").SetIdleTimeout(7200).SaveX(b.ctx)
	b.Client.PolicyAttachment.Create().SetPolicy(long).SetDomain(b.A.Domain).ExecX(b.ctx)
	b.Client.PolicyAttachment.Create().SetPolicy(short).SetUser(b.A.Member).ExecX(b.ctx)
	id := b.running(t, "one", nil)
	b.pass(t, minutes(1))
	if s := b.get(id); s.Idle == nil || s.Idle.Kind != "network" || !s.Idle.EndsAt.Equal(at(10)) || !strings.Contains(s.Idle.Checker, "policy short") {
		t.Fatalf("of the policy: %+v", s.Idle)
	}
	b.pass(t, minutes(4))
	if b.warnings(id) != 1 {
		t.Error("no warning")
	}
	b.pass(t, minutes(5))
	b.ended(t, id)
}

func TestUtilizationAndMemory(t *testing.T) {
	b := newBed(t)
	gpu := resource.Slots{"cpu": 1000, "mem": 1 << 30, "cuda.shares": 1000}
	b.checker(t, CreateIdleCheckerInput{Name: "low", Kind: idlechecker.KindUtilization, Timeout: 1800, Terms: Terms{Thresholds: []*Threshold{{"cpu", 10}, {"cuda", 5}}}})
	busy, idle, dumb, plain := b.running(t, "busy", gpu), b.running(t, "idle", gpu), b.running(t, "dumb", gpu), b.running(t, "plain", nil)
	n := 0
	samples := func() {
		n++
		b.samples(t, busy, map[string]float64{"cpu_util": 1, "cuda_util": 50})
		b.samples(t, idle, map[string]float64{"cpu_util": 2, "cuda_util": 0.5})
		b.samples(t, plain, map[string]float64{"cpu_util": 2})
		if n%20 < 10 { // half of the time its agent sends nothing
			b.samples(t, dumb, map[string]float64{"cpu_util": 2, "cuda_util": 0})
		}
	}
	b.pass(t, minutes(26), samples)
	if s := b.get(idle); s.Idle != nil {
		t.Fatalf("after less than the window: %+v", s.Idle)
	}
	b.pass(t, minutes(6), samples)
	for _, id := range b.Client.Session.Query().IDsX(b.ctx) {
		want := 0
		if id == idle || id == plain {
			want = 1
		}
		if b.warnings(id) != want {
			t.Errorf("%s has %d warnings, %+v", b.get(id).Name, b.warnings(id), b.get(id).Idle)
		}
	}
	// The next leader continues with the measurements that this one stored.
	b.lead.Measurements.save(b.ctx)
	b.takeOver(t)
	b.pass(t, minutes(5), samples)
	if s := b.ended(t, idle); !strings.Contains(s.StatusMessage, "cuda 0.5 %") {
		t.Errorf("ended because %q", s.StatusMessage)
	}
	b.ended(t, plain)
	b.runs(t, busy)
	b.runs(t, dumb)

	c := b.checker(t, CreateIdleCheckerInput{Name: "empty", Kind: idlechecker.KindMemory, Timeout: 600, Terms: Terms{Thresholds: []*Threshold{{"cuda", 5}}}})
	full, once := b.running(t, "full", gpu), b.running(t, "once", gpu)
	b.pass(t, minutes(14), func() {
		b.samples(t, full, map[string]float64{"cuda_mem": 60, "cuda_util": 0, "cpu_util": 20})
		b.samples(t, once, map[string]float64{"cuda_mem": 4, "cuda_util": 0, "cpu_util": 20})
	})
	b.runs(t, full)
	b.lead.Measurements.save(b.ctx)
	trial, err := b.manager().IdleDryRun(b.As(t, b.Superadmin), &c.ID, nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if trial.Examined != 4 || trial.Ending != 1 || trial.Unknown != 2 || len(trial.Sessions) != 1 || trial.Sessions[0].Session.ID != once || !trial.Sessions[0].Now {
		t.Errorf("dry run: %+v", trial)
	}
	b.pass(t, minutes(4), func() {
		b.samples(t, once, map[string]float64{"cuda_mem": 4, "cuda_util": 0, "cpu_util": 20})
	})
	b.ended(t, once)
}

func TestDryRun(t *testing.T) {
	b := newBed(t)
	for _, name := range []string{"a", "b", "c"} {
		b.running(t, name, nil)
		b.now = b.now.Add(minutes(10))
	}
	in := network("", 1200)
	trial, err := b.lead.IdleDryRun(b.As(t, b.A.Admin), nil, &in, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if trial.Examined != 3 || trial.Ending != 2 || len(trial.Sessions) != 3 || trial.Sessions[2].Session.Name != "c" || !trial.Sessions[2].EndsAt.Equal(at(40)) || trial.Sessions[2].Now {
		t.Errorf("would end %+v", trial)
	}
	for who, want := range map[string]int{b.B.Admin.Email: 0} {
		trial, err := b.lead.IdleDryRun(b.As(t, b.B.Admin), nil, &in, nil, nil, nil)
		if err != nil || trial.Examined != want {
			t.Errorf("%s sees %+v %v", who, trial, err)
		}
	}
	if trial, err := b.lead.IdleDryRun(b.As(t, b.Superadmin), nil, &in, nil, &b.B.Project.ID, nil); err != nil || trial.Examined != 0 {
		t.Errorf("of another project: %+v %v", trial, err)
	}
	if _, err := b.lead.IdleDryRun(b.As(t, b.A.Member), nil, &in, nil, nil, nil); problemCode(err) != problem.CodePermissionDenied {
		t.Errorf("a member: %v", err)
	}
	if _, err := b.lead.IdleDryRun(b.As(t, b.Superadmin), nil, nil, nil, nil, nil); problemCode(err) != problem.CodeInvalidArgument {
		t.Errorf("of nothing: %v", err)
	}
	for _, id := range b.Client.Session.Query().IDsX(b.ctx) {
		b.runs(t, id)
	}
}

func problemCode(err error) string {
	if err == nil {
		return ""
	}
	p, _ := problem.From(err)
	return p.Code
}
