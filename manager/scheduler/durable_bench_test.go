package scheduler_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/testenv/wait"
)

const (
	creators = 32
	clients  = 16
	turn     = 4 * time.Second
)

// BenchmarkDurable takes, in turn, on one PostgreSQL that syncs every commit: single-row inserts by
// pgbench; clients that call createSession as fast as it answers, while the scheduler places the
// sessions; and the placements alone, of a queue that exists already. A placement counts when its
// transaction has committed.
func BenchmarkDurable(b *testing.B) {
	dsn, client, db := lasting(b)
	bed := newHarness(b, client, db)
	bed.agents(b, 500, 64, 2)
	if _, err := db.ExecContext(b.Context(), `CREATE TABLE floor (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), a uuid, b text)`); err != nil {
		b.Fatal(err)
	}
	var fsync string
	if err := db.QueryRowContext(b.Context(), "SHOW fsync").Scan(&fsync); err != nil || fsync != "on" {
		b.Fatalf("fsync is %s, %v", fsync, err)
	}
	bed.settle(b)
	var floor, created, placed, drained []float64
	for b.Loop() {
		floor = append(floor, inserts(b, dsn))
		c, p := bed.createAndPlace(b)
		created, placed = append(created, c), append(placed, p)
		drained = append(drained, bed.drain(b))
		bed.clear(b)
	}
	b.ReportMetric(0, "ns/op") // the sum of four measurements has no meaning
	b.ReportMetric(median(floor), "inserts/s")
	b.ReportMetric(median(created), "creates/s")
	b.ReportMetric(median(placed), "placements/s")
	b.ReportMetric(median(drained), "drained/s")
	b.ReportMetric(median(placed)/median(floor), "x-inserts")
	b.ReportMetric(median(drained)/median(floor), "drained-x-inserts")
}

var smallSlots = resource.Slots{resource.CPU: 100, resource.Mem: 64 << 20}

// createAndPlace returns the rate of created sessions, and the rate of sessions that were created
// and placed.
func (d *harness) createAndPlace(b *testing.B) (created, placed float64) {
	stop := d.lead(b)
	defer stop()
	ctx, cancel := context.WithTimeout(d.As(b, d.A.Member), turn)
	defer cancel()
	var made atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for range creators {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := d.create(ctx, smallSlots); err == nil {
					made.Add(1)
				} else if ctx.Err() == nil {
					b.Error(err)
					return
				}
			}
		})
	}
	<-ctx.Done()
	took := time.Since(begin).Seconds()
	wg.Wait()
	wait.Until(b, "all are placed", func() bool { return d.count(b, "pending") == 0 })
	return float64(made.Load()) / took, float64(made.Load()) / time.Since(begin).Seconds()
}

// drain returns the rate at which the scheduler places a queue of 5,000 sessions.
func (d *harness) drain(b *testing.B) float64 {
	const queued = 5000
	d.enqueue(b, queued, smallSlots)
	before := d.count(b, "scheduled")
	begin := time.Now()
	stop := d.lead(b)
	defer stop()
	wait.Until(b, "the queue is placed", func() bool { return d.count(b, "scheduled") == before+queued })
	return queued / time.Since(begin).Seconds()
}

// enqueue stores n pending sessions at once.
func (d *harness) enqueue(b testing.TB, n int, slots resource.Slots) {
	ctx := d.As(b, d.A.Member)
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range creators {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := d.create(ctx, slots); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// settle fills the database with some thousand sessions, as in production. PostgreSQL analyzes the
// tables, as it does once a minute.
func (d *harness) settle(b testing.TB) {
	const some = 3000
	d.enqueue(b, some, smallSlots)
	stop := d.lead(b)
	wait.Until(b, "the first are placed", func() bool { return d.count(b, "scheduled") == some })
	stop()
	if _, err := d.db.ExecContext(b.Context(), "VACUUM ANALYZE"); err != nil {
		b.Fatal(err)
	}
}

// clear deletes all sessions but the first, so that every round begins in the same state.
func (d *harness) clear(b testing.TB) {
	for _, what := range []string{"allocations WHERE session_id NOT IN", "session_events WHERE session_id NOT IN", "kernels WHERE session_id NOT IN", "sessions WHERE id NOT IN"} {
		if _, err := d.db.ExecContext(b.Context(), "DELETE FROM "+what+" (SELECT id FROM sessions ORDER BY created_at LIMIT 3000)"); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := d.db.ExecContext(b.Context(), "DELETE FROM floor"); err != nil {
		b.Fatal(err)
	}
	if _, err := d.db.ExecContext(b.Context(), "VACUUM ANALYZE"); err != nil {
		b.Fatal(err)
	}
}

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

// inserts returns the rate of pgbench's transactions, each of which inserts one row.
func inserts(b *testing.B, dsn string) float64 {
	b.Helper()
	at, err := url.Parse(dsn)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), "pgbench", "-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", "2",
		"-T", fmt.Sprint(int(turn.Seconds())), "-f", "/dev/stdin", "-h", at.Query().Get("host"), "-U", at.Query().Get("user"), at.Path[1:])
	cmd.Stdin = bytes.NewBufferString("INSERT INTO floor (a, b) VALUES (gen_random_uuid(), 'a row');\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Skipf("pgbench: %v: %s", err, out)
	}
	found := tps.FindSubmatch(out)
	if found == nil {
		b.Fatalf("no rate in %s", out)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
