package capacity_test

import (
	"testing"
	"time"

	"github.com/berthhq/berth/manager/capacity"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// A month of 1,000 machines with 6 devices and 100,000 allocations: go test -run none -bench Month ./manager/capacity
func BenchmarkMonth(b *testing.B) {
	w := identitytest.New(b)
	ctx := w.As(b, w.Superadmin)
	month := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	group := w.Client.ResourceGroup.Create().SetName("g").SaveX(ctx)
	reg := w.Client.Registry.Create().SetName("r").SetHost("r.test").SaveX(ctx)
	image := w.Client.Image.Create().SetReference("r.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(ctx)
	s := w.Client.Session.Create().SetName("s").SetType("batch").SetSlots(nil).SetStartedAt(month).SetDomainID(w.A.ID).SetProject(w.A.Project).SetOwner(w.A.Member).
		SetResourceGroup(group).SetImage(image).SaveX(ctx)
	k := w.Client.Kernel.Create().SetSession(s).SetSlots(nil).SetDomainID(w.A.ID).SetProjectID(w.A.Project.ID).SetOwnerID(w.A.Member.ID).SaveX(ctx)
	for _, stmt := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO agents (id, name, status, schedulable, cordon_reason, incarnation, version, architecture, address, plugins, probes, conditions, volumes, counters, allowed_counts, overlay, links, first_seen_at, last_seen_at, resource_group_id)
SELECT gen_random_uuid(), 'n' || n, 'alive', true, '', '', '', '', '', '[]', '[]', '[]', '[]', '{}', '{}', '{}', '[]', $1::timestamptz, $1, $2 FROM generate_series(1, 1000) n`, []any{month, group.ID}},
		{`INSERT INTO devices (id, device_id, plugin, vendor, model, capacity, attributes, pci_address, memory_bytes, processing_units, pcie_root, parent, groups, consumes, health, health_message, allocatable, reject_reasons, agent_id)
SELECT gen_random_uuid(), 'd' || n, '', '', '', '{}', '{}', '', 0, 0, '', '', '[]', '[]', 'healthy', '', true, '[]', a.id FROM agents a, generate_series(1, 6) n`, nil},
		{`INSERT INTO capacity_spans (agent_id, device_id, resource_group_id, slot, amount, out, began_at)
SELECT d.agent_id, d.id, $2, CASE d.device_id WHEN 'd1' THEN 'cpu' WHEN 'd2' THEN 'mem' ELSE 'cuda.device' END, 1 << 30, false, $1 FROM devices d`, []any{month, group.ID}},
		{`INSERT INTO allocations (id, created_at, domain_id, project_id, owner_id, slot, amount, freed_at, session_id, kernel_id, agent_id, device_id)
SELECT gen_random_uuid(), x.at, $2, $3, $4, c.slot, 1, x.at + random() * interval '8 h', $5, $6, c.agent_id, c.device_id
FROM (SELECT *, row_number() OVER () AS n FROM capacity_spans) c, LATERAL (SELECT $1::timestamptz + (g + random()) * interval '1 day 18 h' AS at FROM generate_series(0, 16) g WHERE c.n > 0) x`,
			[]any{month, w.A.ID, w.A.Project.ID, w.A.Member.ID, s.ID, k.ID}},
	} {
		if _, err := w.Client.ExecContext(ctx, stmt.text, stmt.args...); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Client.ExecContext(ctx, `ANALYZE`); err != nil {
		b.Fatal(err)
	}
	to := month.AddDate(0, 1, 0)
	for name, by := range map[string][]capacity.CapacityDimension{"all": nil, "day": {capacity.ByResourceGroup, capacity.ByDay}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				out, err := capacity.Report(ctx, w.Client, capacity.CapacityReportInput{From: month, To: &to, By: by})
				if err != nil || len(out.Rows) < 3 {
					b.Fatal(out, err)
				}
			}
		})
	}
}
