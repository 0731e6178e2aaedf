package series_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/report"
	form "github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/series"
)

var begin = time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC)

// bed is a history of one machine with one container.
type bed struct {
	*testing.T
	*series.Service
	client        *ent.Client
	agent, kernel uuid.UUID
}

func newBed(t *testing.T) *bed {
	t.Parallel()
	b := &bed{T: t, client: identitytest.Client(t), agent: uuid.New(), kernel: uuid.New()}
	b.Service = b.manager()
	return b
}

// manager returns the history as another manager sees it.
func (b *bed) manager() *series.Service {
	s, err := series.New(series.Config{Client: b.client, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// run records a sample every 5 s, stores it and merges, as managers do.
func (b *bed) run(s *series.Service, from time.Time, d time.Duration, value func(at time.Time) float64) {
	b.Helper()
	for at := from; at.Before(from.Add(d)); at = at.Add(5 * time.Second) {
		s.RecordAt(at, b.agent, map[uuid.UUID][]report.Metric{
			b.agent:  {{Name: "cuda_util", DeviceID: "GPU-1", Value: 50, Unit: "percent", Capacity: 100, Quality: "measured"}},
			b.kernel: {{Name: "mem_used", Value: value(at), Unit: "bytes", Quality: "measured"}, {Name: "gone", Quality: "unavailable"}},
		})
	}
	s.Store(b.Context(), from.Add(d))
}

func (b *bed) merge(s *series.Service, now time.Time) {
	b.Helper()
	if err := s.Merge(b.Context(), now); err != nil {
		b.Fatal(err)
	}
}

// read returns the points of the container's memory.
func (b *bed) read(from, to time.Time, points int) ([]form.Point, time.Duration) {
	b.Helper()
	lines, step, err := b.Read(b.Context(), series.Query{Subjects: map[uuid.UUID]uuid.UUID{b.kernel: b.agent}, Metrics: []string{"mem_used"}, From: from, To: to, Points: points})
	if err != nil {
		b.Fatal(err)
	}
	for subject, of := range lines {
		for k := range of {
			if subject != b.kernel || k.Name != "mem_used" {
				b.Errorf("it was not asked for %v of %v", k, subject)
			}
		}
	}
	if l := lines[b.kernel][form.Key{Name: "mem_used"}]; l != nil {
		return l.Points, step
	}
	return nil, step
}

// total returns the number and the sum of the samples in points.
func total(points []form.Point) (count int, sum float64) {
	for _, p := range points {
		count, sum = count+p.Count, sum+p.Sum
	}
	return count, sum
}

func minuteOf(at time.Time) float64 { return float64(at.Sub(begin) / time.Minute) }

// Samples of 30 hours are read in every grain, and no sample is lost or counted twice on the way.
func TestGrains(t *testing.T) {
	b := newBed(t)
	const span = 30 * time.Hour
	b.run(b.Service, begin, span, minuteOf)
	b.merge(b.Service, begin.Add(span))
	const all = int(span / (5 * time.Second))
	for points, want := range map[int]time.Duration{10: 6 * time.Hour, 40: time.Hour, 300: 10 * time.Minute, 2000: time.Minute} {
		got, step := b.read(begin, begin.Add(span), points)
		count, sum := total(got)
		if step != want || count != all || sum != float64(1799*1800/2*12) {
			t.Errorf("%d points: step %s, %d of %d samples, sum %v", points, step, count, all, sum)
		}
		for i, p := range got {
			if i > 0 && !p.At.After(got[i-1].At) {
				t.Fatalf("point %d is not after the one before", i)
			}
		}
	}
	hour, _ := b.read(begin.Add(time.Hour), begin.Add(2*time.Hour), 100)
	want := form.Point{At: begin.Add(time.Hour), Min: 60, Max: 60, Sum: 12 * 60, Count: 12}
	if len(hour) != 60 || !cmp.Equal(hour[0], want) {
		t.Errorf("an hour begins with %+v, want %+v", hour[0], want)
	}
	exact, step := b.read(begin, begin.Add(5*time.Minute), 100)
	if len(exact) != 60 || step != 5*time.Second || exact[12].Max != 1 {
		t.Errorf("%d points, step %s", len(exact), step)
	}
}

// What is kept only in a coarser grain is shown from there, and a time without samples is a gap.
func TestGapsAndRetention(t *testing.T) {
	b := newBed(t)
	b.run(b.Service, begin, 2*time.Hour, minuteOf)
	b.run(b.Service, begin.Add(4*time.Hour), 2*time.Hour, minuteOf)
	now := begin.Add(6 * time.Hour)
	b.merge(b.Service, now)
	if _, err := b.client.ExecContext(t.Context(), `DELETE FROM series_chunks WHERE "grain" = 0 AND start < $1`, begin.Add(5*time.Hour)); err != nil {
		t.Fatal(err)
	}
	got, step := b.read(begin, now, 5000)
	if count, _ := total(got); step != 5*time.Second || count != 4*720 {
		t.Errorf("step %s, %d samples", step, count)
	}
	for _, p := range got {
		if at := p.At.Sub(begin); at >= 2*time.Hour && at < 4*time.Hour {
			t.Fatalf("a point at %s, where there was no sample", at)
		}
	}
}

// A leader that ends half-way, or a second one, changes nothing; late samples are merged.
func TestMergeAgain(t *testing.T) {
	b := newBed(t)
	b.run(b.Service, begin, time.Hour, minuteOf)
	late := b.manager()
	late.RecordAt(begin.Add(30*time.Minute+time.Second), b.agent, map[uuid.UUID][]report.Metric{b.kernel: {{Name: "mem_used", Value: 1000, Quality: "measured"}}})
	b.merge(b.Service, begin.Add(time.Hour+time.Minute))
	if got, _ := b.read(begin, begin.Add(time.Hour), 31); len(got) != 30 {
		t.Errorf("%d points before the merge", len(got))
	}
	b.merge(b.Service, begin.Add(time.Hour+5*time.Minute))
	b.merge(b.Service, begin.Add(time.Hour+6*time.Minute))
	late.Store(t.Context(), begin.Add(2*time.Hour))
	b.merge(b.manager(), begin.Add(time.Hour+7*time.Minute))
	got, _ := b.read(begin, begin.Add(time.Hour), 61)
	if count, _ := total(got); count != 721 || len(got) != 60 || got[30].Max != 1000 || got[30].Count != 13 {
		t.Errorf("%d samples, %d points", count, len(got))
	}
}

// Samples wait for a database that cannot be reached, and the oldest are dropped when there are too many.
func TestDatabaseAway(t *testing.T) {
	b := newBed(t)
	table := func(statement string) {
		if _, err := b.client.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	table(`ALTER TABLE series_chunks RENAME TO away`)
	b.run(b.Service, begin, 3*time.Minute, minuteOf)
	table(`ALTER TABLE away RENAME TO series_chunks`)
	b.Store(t.Context(), begin.Add(3*time.Minute))
	if got, _ := b.read(begin, begin.Add(3*time.Minute), 100); len(got) != 36 {
		t.Errorf("%d points", len(got))
	}
	for i := range series.MaxUnstored + 10 {
		b.RecordAt(begin.Add(time.Duration(i)*time.Minute), b.agent, map[uuid.UUID][]report.Metric{b.kernel: {{Name: "mem_used"}}})
	}
	if n := b.Dropped(); n != 9 { // the last minute is still open
		t.Errorf("%v samples were dropped", n)
	}
}

// A clock that is set back begins another chunk; nothing is overwritten.
func TestClockSetBack(t *testing.T) {
	b := newBed(t)
	b.run(b.Service, begin, 2*time.Minute, minuteOf)
	b.run(b.Service, begin.Add(30*time.Second+time.Millisecond), time.Minute, minuteOf)
	b.Store(t.Context(), begin.Add(3*time.Minute))
	if got, _ := b.read(begin, begin.Add(2*time.Minute), 3); len(got) != 2 {
		t.Errorf("%v", got)
	} else if count, _ := total(got); count != 36 {
		t.Errorf("%d samples", count)
	}
}

func TestSteps(t *testing.T) {
	for span, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: 30 * time.Second, 7 * 24 * time.Hour: time.Hour, 3650 * 24 * time.Hour: 28 * 24 * time.Hour} {
		if got := series.StepOf(span, 300); got != want {
			t.Errorf("%s: step %s, want %s", span, got, want)
		}
	}
}
