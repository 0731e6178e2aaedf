package scheduler_test

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// BenchmarkBacklog has 5,000 agents and submits 200 sessions a second that fit, first while no
// session waits, then while 10,000 sessions wait for capacity that no agent has. It reports the
// time from the answer of createSession to the event of the committed placement, the ratio of both,
// and the memory of this process: manager and clients.
//
// In "counted", PostgreSQL has statistics of the tables. In "uncounted", it has none, as in the
// first minute of a new database.
func BenchmarkBacklog(b *testing.B) {
	b.Run("counted", func(b *testing.B) { submitBeside(b, true) })
	b.Run("uncounted", func(b *testing.B) { submitBeside(b, false) })
}

func submitBeside(b *testing.B, counted bool) {
	_, client, db := lasting(b)
	if !counted {
		neverCount(b, db)
	}
	bed := newHarness(b, client, db)
	bed.agents(b, 5000, 16, 2)
	// Half of each agent's accelerators is in use, so that requests for whole ones wait.
	blocker := resource.Slots{"cuda.shares": 2000, resource.CPU: 100, resource.Mem: 1 << 20}
	bed.enqueue(b, 1, resource.Slots{resource.CPU: 100, resource.Mem: 1 << 20})
	if _, err := db.ExecContext(b.Context(), `INSERT INTO allocations (id, created_at, domain_id, project_id, owner_id, slot, amount, session_id, agent_id, device_id, kernel_id)
SELECT gen_random_uuid(), now(), k.domain_id, k.project_id, k.owner_id, 'cuda.shares', 500, k.session_id, d.agent_id, d.id, k.id
FROM devices d, (SELECT * FROM kernels LIMIT 1) k WHERE d.device_id LIKE 'gpu-%'`); err != nil {
		b.Fatal(err)
	}
	count := func() {
		if !counted {
			return
		}
		if _, err := db.ExecContext(b.Context(), "VACUUM ANALYZE"); err != nil {
			b.Fatal(err)
		}
	}
	count()
	var without, beside []float64
	stop := bed.lead(b)
	wait.Until(b, "the first is placed", func() bool { return bed.count(b, "pending") == 0 })
	decided := bed.decisions(b)
	for range b.N {
		without = append(without, bed.submit(b, decided, 0)...)
	}
	stop()
	bed.enqueue(b, backlog, blocker)
	count()
	stop = bed.lead(b)
	defer stop()
	wait.Until(b, "the backlog is explained", func() bool {
		var n int
		err := db.QueryRowContext(b.Context(), "SELECT count(*) FROM sessions WHERE pending IS NOT NULL").Scan(&n)
		return err == nil && n == backlog
	})
	count()
	b.ResetTimer()
	for range b.N {
		beside = append(beside, bed.submit(b, decided, backlog)...)
	}
	slices.Sort(without)
	slices.Sort(beside)
	p99 := func(all []float64) float64 { return all[len(all)*99/100] }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(without[len(without)/2], "p50-ms-without")
	b.ReportMetric(p99(without), "p99-ms-without")
	b.ReportMetric(beside[len(beside)/2], "p50-ms")
	b.ReportMetric(p99(beside), "p99-ms")
	b.ReportMetric(p99(beside)/p99(without), "x-p99-without")
	b.ReportMetric(resident(b), "RSS-MiB")
}

// neverCount keeps PostgreSQL from analyzing the tables.
func neverCount(b *testing.B, db *sql.DB) {
	b.Helper()
	if _, err := db.ExecContext(b.Context(), `DO $$ DECLARE t regclass; BEGIN
FOR t IN SELECT c.oid FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace LOOP
  EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', t);
END LOOP; END $$`); err != nil {
		b.Fatal(err)
	}
}

// backlog is the number of waiting sessions, in addition to the submitted ones.
const backlog = 10_000

// submit creates 2,000 sessions that fit, in 10 s, and returns the time of each decision in
// milliseconds. waiting is the number of waiting sessions before and after.
func (d *harness) submit(b *testing.B, decided func(uuid.UUID) time.Time, waiting int) []float64 {
	const n = 2000
	ctx := d.As(b, d.A.Member)
	var mu sync.Mutex
	asked := map[uuid.UUID]time.Time{}
	var wg sync.WaitGroup
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range n {
		<-tick.C
		wg.Go(func() {
			id, err := d.create(ctx, smallSlots)
			if err != nil {
				b.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			asked[id] = time.Now()
		})
	}
	wg.Wait()
	wait.Until(b, "all that fit are placed", func() bool { return d.count(b, "pending") == waiting })
	var all []float64
	for id, from := range asked {
		wait.Until(b, "the decision has arrived", func() bool { return !decided(id).IsZero() })
		all = append(all, float64(max(decided(id).Sub(from), 0).Microseconds())/1000)
	}
	return all
}

// decisions returns when the scheduler has published a session, which is after its commit.
func (d *harness) decisions(b *testing.B) func(uuid.UUID) time.Time {
	var mu sync.Mutex
	at := map[uuid.UUID]time.Time{}
	news := d.bus.Gather(b.Context(), []event.Topic{event.Session}, event.ByReasons, "creation")
	go func() {
		for {
			select {
			case <-b.Context().Done():
				return
			case <-news.Wake():
			}
			mu.Lock()
			for id := range news.Take().Changed[event.Session] {
				if at[id].IsZero() {
					at[id] = time.Now()
				}
			}
			mu.Unlock()
		}
	}()
	return func(id uuid.UUID) time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at[id]
	}
}

// resident is the memory of this process.
func resident(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kb); n == 1 {
			return kb / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}
