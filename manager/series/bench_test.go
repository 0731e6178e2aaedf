package series_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/series"
)

// fleet is 250 machines with 20 containers each, with 8 metrics that look like real ones.
type fleet struct {
	random *rand.Rand
	agents []uuid.UUID
	of     map[uuid.UUID][]uuid.UUID
	used   map[uuid.UUID]float64
}

func newFleet(agents, kernels int) *fleet {
	f := &fleet{random: rand.New(rand.NewPCG(1, 2)), of: map[uuid.UUID][]uuid.UUID{}, used: map[uuid.UUID]float64{}}
	for range agents {
		a := uuid.New()
		f.agents = append(f.agents, a)
		for range kernels {
			f.of[a] = append(f.of[a], uuid.New())
		}
	}
	return f
}

func (f *fleet) sample(agent uuid.UUID) map[uuid.UUID][]report.Metric {
	out := map[uuid.UUID][]report.Metric{}
	for _, k := range f.of[agent] {
		f.used[k] += float64(f.random.IntN(5000))
		used := f.used[k]
		m := func(name, unit string, value float64) report.Metric {
			return report.Metric{Name: name, Value: value, Unit: unit, Quality: "measured"}
		}
		out[k] = []report.Metric{
			m("cpu_util", "percent", f.random.Float64()*100), m("cpu_used_ms", "ms", used), m("mem_used", "bytes", float64(4096*f.random.IntN(1<<20))), m("pids", "count", 7),
			m("net_rx", "bytes", used*113), m("net_tx", "bytes", used*17), m("io_read", "bytes", 4096*used), m("io_write", "bytes", 4096*used),
		}
	}
	return out
}

func benchService(b *testing.B) (*series.Service, *ent.Client) {
	client := identitytest.Client(b)
	s, err := series.New(series.Config{Client: client, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	return s, client
}

// BenchmarkIngest records and stores one minute of 5,000 containers with 8 metrics every 5 s: 480,000 samples. Its time
// divided by a minute is the share of a core, that of PostgreSQL excluded where it runs beside.
func BenchmarkIngest(b *testing.B) {
	s, client := benchService(b)
	f := newFleet(250, 20)
	at, count := begin, 0
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		var rounds []map[uuid.UUID]map[uuid.UUID][]report.Metric
		for range 12 {
			round := map[uuid.UUID]map[uuid.UUID][]report.Metric{}
			for _, a := range f.agents {
				round[a] = f.sample(a)
			}
			rounds = append(rounds, round)
		}
		b.StartTimer()
		for i, round := range rounds {
			for a, subjects := range round {
				s.RecordAt(at.Add(time.Duration(i)*5*time.Second), a, subjects)
			}
		}
		at = at.Add(time.Minute)
		s.Store(b.Context(), at)
		count += 250 * 20 * 8 * 12
	}
	b.StopTimer()
	b.ReportMetric(100*b.Elapsed().Seconds()/float64(60*b.N), "%core")
	b.ReportMetric(float64(size(b, client))/float64(count)*1e6/1e6, "MB/million-samples")
}

// BenchmarkRead reads a week of one measure of 100 containers that was merged, as a page with a plot does.
func BenchmarkRead(b *testing.B) {
	s, _ := benchService(b)
	f := newFleet(5, 20)
	const week = 7 * 24 * time.Hour
	for at := begin; at.Before(begin.Add(week)); at = at.Add(time.Minute) {
		for _, a := range f.agents {
			s.RecordAt(at, a, f.sample(a))
		}
		if at.Minute() == 59 {
			s.Store(b.Context(), at)
		}
	}
	s.Store(b.Context(), begin.Add(week+time.Minute))
	if err := s.Merge(b.Context(), begin.Add(week+time.Hour)); err != nil {
		b.Fatal(err)
	}
	q := series.Query{Subjects: map[uuid.UUID]uuid.UUID{}, Metrics: []string{"cpu_util"}, From: begin, To: begin.Add(week)}
	for a, kernels := range f.of {
		for _, k := range kernels {
			q.Subjects[k] = a
		}
	}
	for _, points := range []int{300, 1100} {
		q.Points = points
		b.Run(fmt.Sprintf("points=%d", points), func(b *testing.B) {
			for range b.N {
				lines, step, err := s.Read(b.Context(), q)
				if err != nil || len(lines) != 100 {
					b.Fatalf("%d lines, step %s: %v", len(lines), step, err)
				}
			}
		})
	}
}

// size returns the bytes of the table with its indexes.
func size(b *testing.B, client *ent.Client) (n int64) {
	res, err := client.QueryContext(b.Context(), `SELECT pg_total_relation_size('series_chunks')`)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Close()
	for res.Next() {
		if err := res.Scan(&n); err != nil {
			b.Fatal(err)
		}
	}
	return n
}
