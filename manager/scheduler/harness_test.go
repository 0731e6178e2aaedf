package scheduler_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/migrate"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/service/postgres"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/store"
)

const architecture = "amd64"

// harness is a queue with agents that exist only as rows. It has no reconciler, so placed sessions
// stay scheduled.
type harness struct {
	*identitytest.World
	db        *sql.DB
	bus       *event.Bus
	sessions  *session.Service
	scheduler *scheduler.Scheduler
	group     *ent.ResourceGroup
	epoch     int64
}

func newHarness(t testing.TB, client *ent.Client, db *sql.DB) *harness {
	t.Helper()
	b := &harness{World: identitytest.Fill(t, client), db: db, bus: event.New(nil, nil), epoch: 1}
	policies := policy.New(policy.Config{Client: client, Bus: b.bus})
	b.scheduler = scheduler.New(scheduler.Config{Client: client, Bus: b.bus, Policies: policies, Logger: logger()})
	b.sessions = session.New(session.Config{
		Client: client, Bus: b.bus, Images: image.New(image.Config{Client: client}), Fitter: b.scheduler, Policies: policies, Logger: logger(),
	})
	ctx := b.system(t)
	b.group = client.ResourceGroup.Create().SetName("default").SaveX(ctx)
	reg := client.Registry.Create().SetName("test").SetHost("registry.test").SaveX(ctx)
	client.Image.Create().SetReference("registry.test/prog:latest").SetName("prog:latest").SetArchitecture(architecture).
		SetDigest("sha256:1").SetRegistry(reg).ExecX(ctx)
	if _, err := leader.RaiseFence(ctx, client, b.epoch, elected); err != nil {
		t.Fatal(err)
	}
	return b
}

// lasting is a PostgreSQL with durable commits, as in production.
func lasting(t testing.TB) (dsn string, client *ent.Client, db *sql.DB) {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	srv, err := postgres.Start(t.Context(), postgres.Config{Dir: filepath.Join(dir, "postgres"), Logger: logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Stop(context.Background()) })
	dsn = srv.DSN(postgres.Database)
	if db, err = sql.Open("pgx", dsn); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(20) // as many as a manager opens
	db.SetMaxIdleConns(20)
	if err := migrate.Up(t.Context(), db, migrate.Files()); err != nil {
		t.Fatal(err)
	}
	client = store.Open(db)
	t.Cleanup(func() { client.Close() })
	return dsn, client, db
}

// agents adds rows of agents, each with cores, memory and accelerators.
func (b *harness) agents(t testing.TB, n, cores, accelerators int) {
	t.Helper()
	ctx := b.system(t)
	for _, name := range []string{resource.CPU, resource.Mem, "cuda.shares"} {
		b.Client.SlotType.Create().SetName(name).SetKind("count").SetQuantum("0.001").OnConflict().DoNothing().ExecX(ctx)
	}
	for start := 0; start < n; start += 500 {
		var rows []*ent.AgentCreate
		for i := start; i < min(n, start+500); i++ {
			rows = append(rows, b.Client.Agent.Create().SetName(fmt.Sprintf("agent-%05d", i)).SetArchitecture(architecture).SetResourceGroup(b.group))
		}
		var devices []*ent.DeviceCreate
		for _, a := range b.Client.Agent.CreateBulk(rows...).SaveX(ctx) {
			add := func(name string, capacity resource.Slots) {
				devices = append(devices, b.Client.Device.Create().SetAgent(a).SetDeviceID(name).SetCapacity(capacity).SetHealth("healthy"))
			}
			add("cpu", resource.Slots{resource.CPU: int64(cores) * 1000})
			add("mem", resource.Slots{resource.Mem: int64(cores) << 32})
			for k := range accelerators {
				add(fmt.Sprintf("gpu-%d", k), resource.Slots{"cuda.shares": 1000})
			}
		}
		b.Client.Device.CreateBulk(devices...).ExecX(ctx)
	}
}

// create requests a session as the member of A.
func (b *harness) create(ctx context.Context, slots resource.Slots) (uuid.UUID, error) {
	made, err := b.sessions.CreateSession(ctx, session.CreateSessionInput{
		Image: "registry.test/prog:latest", Command: []string{"true"}, Slots: slots,
	})
	if err != nil {
		return uuid.Nil, err
	}
	return made.Session.ID, nil
}

// lead runs the scheduler until stop.
func (b *harness) lead(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(b.system(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.scheduler.Lead(ctx, b.epoch)
	}()
	return func() {
		cancel()
		<-done
	}
}

// count returns the number of sessions in a state.
func (b *harness) count(t testing.TB, status string) (n int) {
	t.Helper()
	if err := b.db.QueryRowContext(t.Context(), "SELECT count(*) FROM sessions WHERE status = $1 AND terminated_at IS NULL", status).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// system returns a context with the platform as the viewer.
func (b *harness) system(t testing.TB) context.Context { return viewer.SystemContext(t.Context()) }

// elected always confirms that the caller is the leader.
func elected(context.Context) error { return nil }
