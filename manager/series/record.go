package series

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

const (
	storeEvery = 5 * time.Second
	// storeTime limits one try to store chunks, and lastTime the one at the end.
	storeTime = 20 * time.Second
	lastTime  = 5 * time.Second
	// maxUnstored limits the chunks that wait for the database: 10 minutes of 500 machines.
	maxUnstored = 5000
	// maxBatch limits the chunks of one statement.
	maxBatch = 500
)

// open are the minutes that are not complete.
type open struct {
	mu       sync.Mutex
	by       map[uuid.UUID]*minute // by source
	complete []closed
}

// minute are the samples of one source in one minute.
type minute struct {
	first, end time.Time // of the first sample, and of the minute
	lines      series.Lines
	count      int
}

// closed is a minute that waits for the database.
type closed struct {
	source uuid.UUID
	*minute
}

// Record adds one round of samples of a source, by the subjects that they are about. It does not block.
func (s *Service) Record(source uuid.UUID, subjects map[uuid.UUID][]report.Metric) {
	s.record(clock.Now(), source, subjects)
}

func (s *Service) record(at time.Time, source uuid.UUID, subjects map[uuid.UUID][]report.Metric) {
	at = at.UTC().Truncate(time.Millisecond)
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	m := s.open.by[source]
	if m != nil && (!at.Before(m.end) || at.Before(m.first)) { // a clock can be set back
		s.close(source)
		m = nil
	}
	if m == nil {
		_, end := samples.span(at)
		m = &minute{first: at, end: end, lines: series.Lines{}}
		s.open.by[source] = m
	}
	for subject, metrics := range subjects {
		for _, x := range metrics {
			if x.Quality == "unavailable" { // an unknown value is not 0
				continue
			}
			m.lines.Line(subject, series.Key{Name: x.Name, Device: x.DeviceID}).Append(series.Line{
				Unit: x.Unit, Capacity: x.Capacity, Quality: x.Quality, Points: []series.Point{series.Sample(at, x.Value)},
			})
			m.count++
		}
	}
}

// close moves the minute of a source to those that wait for the database.
func (s *Service) close(source uuid.UUID) {
	if m := s.open.by[source]; m.count > 0 {
		s.open.complete = append(s.open.complete, closed{source, m})
	}
	delete(s.open.by, source)
	if over := len(s.open.complete) - maxUnstored; over > 0 {
		for _, c := range s.open.complete[:over] {
			s.meter.dropped.Add(float64(c.count))
		}
		s.open.complete = s.open.complete[over:]
	}
}

// take returns the minutes that are complete at a time, and removes them.
func (s *Service) take(now time.Time) []closed {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	for source, m := range s.open.by {
		if !now.Before(m.end) {
			s.close(source)
		}
	}
	out := s.open.complete
	s.open.complete = nil
	return out
}

// giveBack keeps minutes for the next try.
func (s *Service) giveBack(list []closed) {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	s.open.complete = append(list, s.open.complete...)
}

// Run stores complete minutes until ctx ends, and then all.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(storeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
			defer cancel()
			s.store(last, s.take(clock.Now().Add(time.Hour)))
			return nil
		case <-tick.C:
			bounded, cancel := context.WithTimeout(ctx, storeTime)
			s.store(bounded, s.take(clock.Now()))
			cancel()
		}
	}
}

func (s *Service) store(ctx context.Context, list []closed) {
	ctx = store.On(viewer.SystemContext(ctx), store.Audit)
	for len(list) > 0 {
		batch := list[:min(maxBatch, len(list))]
		if err := s.insert(ctx, batch); err != nil {
			s.log.WarnContext(ctx, "store the history of measurements", "error", err)
			s.giveBack(list)
			return
		}
		list = list[len(batch):]
	}
}

func (s *Service) insert(ctx context.Context, batch []closed) error {
	rows := newRows(samples)
	count := 0
	for _, c := range batch {
		if err := rows.add(s.codec, c.source, c.first, c.lines); err != nil {
			return err
		}
		count += c.count
	}
	// Another manager can have stored a minute with the same first millisecond before the agent came here.
	n, err := rows.write(ctx, s.client, `DO NOTHING`)
	if err != nil {
		return err
	}
	s.meter.samples.Add(float64(count))
	s.meter.bytes.Add(float64(n))
	return nil
}
