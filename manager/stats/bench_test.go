package stats_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/price"
	"github.com/berthhq/berth/manager/stats"
)

// BenchmarkReport sums a month of 1 million containers of 1,000 users in 100 projects, with two slots each,
// by project with costs, and what one user and one project spent in it.
func BenchmarkReport(b *testing.B) {
	w := identitytest.New(b)
	ctx := viewer.SystemContext(b.Context())
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	to := begin.AddDate(0, 1, 0)
	fillLedger(ctx, b, w, begin)
	for i, slot := range []string{"cpu", "mem"} {
		for day := range 3 {
			w.Client.Price.Create().SetKind("slot_hour").SetSlot(slot).SetMicros(int64(1000 * (i + 1))).SetValidFrom(begin.AddDate(0, 0, 10*day-1)).ExecX(ctx)
		}
	}
	table, err := price.Load(ctx, w.Client)
	if err != nil {
		b.Fatal(err)
	}
	someone := w.Client.User.Query().Where(user.Username("u7")).OnlyIDX(ctx)
	b.Run("by project and slot", func(b *testing.B) {
		for b.Loop() {
			rows, err := stats.Report(ctx, w.Client, stats.UsageReportInput{From: begin, To: &to, By: []stats.UsageDimension{stats.ByProject, stats.BySlot}})
			if err != nil || len(rows) != 200 || rows[0].Cost == nil {
				b.Fatalf("%d rows: %v", len(rows), err)
			}
		}
	})
	b.Run("spent by a user", func(b *testing.B) {
		for b.Loop() {
			spent, err := stats.Spent(ctx, w.Client, table, stats.UsageReportInput{From: begin, To: &to, User: &someone})
			if err != nil || spent.Sign() <= 0 {
				b.Fatal(err)
			}
		}
	})
}

// fillLedger inserts a million containers with two allocations each. All belong to one session, which the report does not read.
func fillLedger(ctx context.Context, b *testing.B, w *identitytest.World, begin time.Time) {
	c := w.Client
	group := c.ResourceGroup.Create().SetName("g").SaveX(ctx)
	node := c.Agent.Create().SetName("n").SetResourceGroup(group).SaveX(ctx)
	device := c.Device.Create().SetAgent(node).SetDeviceID("cpu").SetPlugin("cpu").SetCapacity(resource.Slots{}).SaveX(ctx)
	reg := c.Registry.Create().SetName("r").SetHost("r.test").SaveX(ctx)
	image := c.Image.Create().SetReference("r.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(ctx)
	var people []*ent.UserCreate
	for i := range 1000 {
		people = append(people, c.User.Create().SetEmail(fmt.Sprintf("u%d@example.org", i)).SetUsername(fmt.Sprint("u", i)).SetPasswordHash("-").SetDomainID(w.A.ID))
	}
	users := c.User.CreateBulk(people...).SaveX(ctx)
	var projects []*ent.Project
	for i := range 100 {
		projects = append(projects, c.Project.Create().SetName(fmt.Sprint("p", i)).SetDomainID(w.A.ID).SaveX(ctx))
	}
	one := c.Session.Create().SetName("s").SetType("batch").SetStatus("terminated").SetTerminatedAt(begin).SetSlots(resource.Slots{}).
		SetDomainID(w.A.ID).SetProject(projects[0]).SetOwner(users[0]).SetResourceGroup(group).SetImage(image).SaveX(ctx)
	k := c.Kernel.Create().SetSession(one).SetSlots(resource.Slots{}).SetStatus("terminated").SetDomainID(w.A.ID).SetProjectID(projects[0].ID).SetOwnerID(users[0].ID).SaveX(ctx)
	kept := id.New(id.Allocation)
	c.Allocation.Create().SetID(kept).SetSlot("cpu").SetAmount(1).SetCreatedAt(begin.AddDate(-1, 0, 0)).SetFreedAt(begin.AddDate(-1, 0, 1)).SetSessionID(one.ID).SetKernel(k).
		SetAgentID(node.ID).SetDevice(device).SetDomainID(w.A.ID).SetProjectID(projects[0].ID).SetOwnerID(users[0].ID).ExecX(ctx)
	exec := func(sql string, args ...any) {
		b.Helper()
		if _, err := c.ExecContext(ctx, sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	for part := range 20 { // a statement has 30 seconds
		exec(`INSERT INTO kernels SELECT (jsonb_populate_record(k, jsonb_build_object('id', gen_random_uuid()))).* FROM kernels k, generate_series(1, 50000) WHERE k.id = $1`, k.ID)
		exec(`INSERT INTO allocations (id, created_at, freed_at, slot, amount, session_id, kernel_id, agent_id, device_id, domain_id, project_id, owner_id)
SELECT gen_random_uuid(), k.at, k.at + k.n % 86400 * interval '1.000001 second', s.slot, s.amount, a.session_id, k.id, a.agent_id, a.device_id, a.domain_id,
  (SELECT array_agg(id ORDER BY name) FROM projects WHERE name ~ '^p[0-9]+$')[1 + k.n % 100], (SELECT array_agg(id ORDER BY email) FROM users WHERE email ~ '^u[0-9]+@')[1 + k.n % 1000]
FROM (SELECT id, n, $1::timestamptz + (n * 52 % 2592000) * interval '1 second' AS at
    FROM (SELECT id, $3::bigint * 50000 + row_number() OVER () AS n FROM kernels WHERE id <> $4 AND NOT EXISTS (SELECT FROM allocations WHERE kernel_id = kernels.id)) r) k,
  (VALUES ('cpu', 4000), ('mem', 17179869184)) AS s(slot, amount), allocations a WHERE a.id = $2`, begin, kept, part, k.ID)
	}
	exec(`ANALYZE`)
}
