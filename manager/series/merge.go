package series

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

const (
	mergeEvery = time.Minute
	// lateness is how long managers have to store the last samples of a span.
	lateness = 3 * time.Minute
	// mergeBack limits what a leader merges after a time without one.
	mergeBack = 31 * 24 * time.Hour
)

// Lead records the load of deployments and merges spans that are complete until ctx ends. Only the leader runs it. A span is merged from all its chunks and
// replaces what was merged before, so a leader that is killed half-way, or one that does it again, changes nothing.
func (s *Service) Lead(ctx context.Context) {
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { s.loads(ctx) })
	tick := time.NewTicker(mergeEvery)
	defer tick.Stop()
	for {
		if err := s.Merge(ctx, clock.Now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "merge the history of measurements", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Merge merges all spans that are complete at a time and were not merged yet.
func (s *Service) Merge(ctx context.Context, now time.Time) error {
	ctx = store.On(viewer.SystemContext(ctx), store.Leader)
	for g := minutes; g < grains; g++ {
		if err := s.mergeGrain(ctx, g, now.Add(-lateness)); err != nil {
			return err
		}
	}
	return nil
}

// mergeGrain merges the spans of a grain that ended before a time. It begins with the last one that was merged, because
// chunks may have come late.
func (s *Service) mergeGrain(ctx context.Context, g grain, before time.Time) error {
	last, err := s.edge(ctx, g, "max")
	if err != nil {
		return err
	}
	first, err := s.edge(ctx, g-1, "min")
	if err != nil || first.IsZero() {
		return err
	}
	if oldest := before.Add(-mergeBack); first.Before(oldest) {
		first = oldest
	}
	if !last.IsZero() && last.After(first) {
		first = last
	}
	for at := first; ; {
		start, end := g.span(at)
		if end.After(before) {
			return nil
		}
		if !start.Equal(last) || s.again(g, start) {
			begun := time.Now()
			if err := s.mergeSpan(ctx, g, start, end); err != nil {
				return fmt.Errorf("merge %s from %s: %w", g, start.Format(time.RFC3339), err)
			}
			s.meter.merged.WithLabelValues(g.String()).Observe(time.Since(begun).Seconds())
		}
		at = end
	}
}

// again reports whether the last span that was merged by another leader is merged once more.
func (s *Service) again(g grain, start time.Time) bool {
	if s.merged[g].Equal(start) {
		return false
	}
	s.merged[g] = start
	return true
}

func (s *Service) edge(ctx context.Context, g grain, which string) (time.Time, error) {
	res, err := s.client.QueryContext(ctx, `SELECT `+which+`(start) FROM series_chunks WHERE "grain" = $1`, int16(g))
	if err != nil {
		return time.Time{}, err
	}
	defer res.Close()
	var at *time.Time
	if res.Next() {
		if err := res.Scan(&at); err != nil {
			return time.Time{}, err
		}
	}
	if err := res.Err(); err != nil || at == nil {
		return time.Time{}, err
	}
	return at.UTC(), nil
}

// mergeSpan merges the finer chunks of one span, source by source.
func (s *Service) mergeSpan(ctx context.Context, g grain, start, end time.Time) error {
	sources, err := s.sources(ctx, g-1, start, end)
	if err != nil {
		return err
	}
	for _, source := range sources {
		lines := series.Lines{}
		if err := s.load(ctx, g-1, []uuid.UUID{source}, start, end, lines, func(uuid.UUID, series.Key) bool { return true }); err != nil {
			return err
		}
		out := newRows(g)
		for subject, of := range lines {
			for _, l := range of {
				l.Coarsen(g.step())
			}
			if err := out.add(s.codec, subject, start, series.Lines{subject: of}); err != nil {
				return err
			}
		}
		if _, err := out.write(ctx, s.client, `DO UPDATE SET data = excluded.data`); err != nil {
			return err
		}
	}
	s.again(g, start)
	return nil
}

func (s *Service) sources(ctx context.Context, g grain, from, to time.Time) (out []uuid.UUID, err error) {
	res, err := s.client.QueryContext(ctx, `SELECT DISTINCT source FROM series_chunks WHERE "grain" = $1 AND start >= $2 AND start < $3 ORDER BY source`,
		int16(g), from, to)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	for res.Next() {
		var one uuid.UUID
		if err := res.Scan(&one); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, res.Err()
}
