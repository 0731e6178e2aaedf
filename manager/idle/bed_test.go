package idle

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session"
)

// bed has rows of sessions, a clock that the test sets, and the managers that the test creates. The
// newest manager leads.
type bed struct {
	*identitytest.World
	ctx   context.Context // context of the platform
	now   time.Time
	redis *redis.Client
	group *ent.ResourceGroup
	image *ent.Image
	epoch int64
	lead  *Service
}

func newBed(t *testing.T) *bed {
	t.Helper()
	opt, err := redis.ParseURL(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{World: identitytest.New(t), ctx: viewer.SystemContext(t.Context()), now: start, redis: redis.NewClient(opt)}
	t.Cleanup(func() { b.redis.Close() })
	b.group = b.Client.ResourceGroup.Create().SetName("default").SaveX(b.ctx)
	reg := b.Client.Registry.Create().SetName("test").SetHost("registry.test").SaveX(b.ctx)
	b.image = b.Client.Image.Create().SetReference("registry.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(b.ctx)
	b.Client.SlotType.Create().SetName("cuda.shares").SetKind("shares").ExecX(b.ctx)
	b.takeOver(t)
	return b
}

// manager creates another manager.
func (b *bed) manager() *Service {
	bus, log := event.New(nil, nil), slog.New(slog.DiscardHandler)
	policies := policy.New(policy.Config{Client: b.Client, Bus: bus})
	now := func() time.Time { return b.now }
	return New(Config{
		Client: b.Client, Bus: bus, Policies: policies, Redis: b.redis, Logger: log, Now: now, Measurements: NewMeasurements(b.redis, now, log),
		Sessions: session.New(session.Config{Client: b.Client, Bus: bus, Policies: policies, Logger: log}),
	})
}

// takeOver makes a new manager the leader.
func (b *bed) takeOver(t *testing.T) {
	t.Helper()
	b.epoch++
	if _, err := leader.RaiseFence(b.ctx, b.Client, b.epoch, elected); err != nil {
		t.Fatal(err)
	}
	b.lead = b.manager()
	if err := b.lead.Begin(b.ctx); err != nil {
		t.Fatal(err)
	}
}

// running creates a session that has just started.
func (b *bed) running(t *testing.T, name string, slots resource.Slots) uuid.UUID {
	t.Helper()
	if slots == nil {
		slots = resource.Slots{"cpu": 1000, "mem": 1 << 30}
	}
	s := b.Client.Session.Create().SetName(name).SetType("interactive").SetStatus(lifecycle.Running).SetStartedAt(b.now).SetSlots(slots).
		SetDomain(b.A.Domain).SetProject(b.A.Project).SetOwner(b.A.Member).SetResourceGroup(b.group).SetImage(b.image).SaveX(b.ctx)
	b.Client.Kernel.Create().SetSession(s).SetSlots(slots).SetStatus(lifecycle.Running).
		SetDomainID(s.DomainID).SetProjectID(s.ProjectID).SetOwnerID(s.OwnerID).ExecX(b.ctx)
	return s.ID
}

// checker creates a checker for all sessions.
func (b *bed) checker(t *testing.T, in CreateIdleCheckerInput) *ent.IdleChecker {
	t.Helper()
	root := b.As(t, b.Superadmin)
	made, err := b.lead.CreateIdleChecker(root, in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.lead.AttachIdleChecker(root, AttachIdleCheckerInput{Checker: made.Checker.ID}); err != nil {
		t.Fatal(err)
	}
	return made.Checker
}

// pass advances the clock in steps of ten seconds; the leader checks after each.
func (b *bed) pass(t *testing.T, d time.Duration, each ...func()) {
	t.Helper()
	for end := b.now.Add(d); ; {
		if _, err := b.lead.Pass(b.ctx, b.epoch); err != nil {
			t.Fatal(err)
		}
		if !b.now.Before(end) {
			return
		}
		b.now = b.now.Add(10 * time.Second)
		for _, do := range each {
			do()
		}
	}
}

// samples sends samples of all kernels of a session.
func (b *bed) samples(t *testing.T, id uuid.UUID, percent map[string]float64) {
	t.Helper()
	for _, k := range b.Client.Session.GetX(b.ctx, id).QueryKernels().IDsX(b.ctx) {
		var list []report.Metric
		for name, v := range percent {
			list = append(list, report.Metric{Name: name, Value: v, Capacity: 100, Unit: "percent"})
		}
		b.lead.Measurements.Sampled(k, list)
	}
}

func (b *bed) get(id uuid.UUID) *ent.Session { return b.Client.Session.GetX(b.ctx, id) }

func (b *bed) runs(t *testing.T, id uuid.UUID) {
	t.Helper()
	if s := b.get(id); s.Status != lifecycle.Running {
		t.Fatalf("%s at %s: %s %s", s.Name, b.now, s.Status, s.StatusMessage)
	}
}

func (b *bed) ended(t *testing.T, id uuid.UUID) *ent.Session {
	t.Helper()
	s := b.get(id)
	if s.Status != lifecycle.Terminating || s.TerminationReason == nil || *s.TerminationReason != "idle" || s.Idle != nil {
		t.Fatalf("%s at %s: %s %v %+v", s.Name, b.now, s.Status, s.TerminationReason, s.Idle)
	}
	return s
}

// warnings returns the number of warnings in the history of a session.
func (b *bed) warnings(id uuid.UUID) int {
	return b.Client.SessionEvent.Query().Where(sessionevent.SessionID(id), sessionevent.Code("idle_warning")).CountX(b.ctx)
}

// elected confirms that a manager still leads.
func elected(context.Context) error { return nil }
