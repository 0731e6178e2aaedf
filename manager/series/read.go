package series

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/manager/store"
)

// Query asks for the history of subjects.
type Query struct {
	// Subjects are the sources of the samples of each subject: the machine of a container, or the subject itself.
	Subjects map[uuid.UUID]uuid.UUID
	Metrics  []string // none: all
	From, To time.Time
	Points   int // at most, per line
}

// steps are the distances of points that are returned.
var steps = []time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
	30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour,
}

// stepOf returns the smallest step that gives no more than a number of points.
func stepOf(span time.Duration, points int) time.Duration {
	for _, step := range steps {
		if int(span/step) < points {
			return step
		}
	}
	return steps[len(steps)-1]
}

// grainOf returns the coarsest grain from which points of a step can be made.
func grainOf(step time.Duration) grain {
	g := samples
	for g+1 < grains && step%(g+1).step() == 0 {
		g++
	}
	return g
}

// Read returns lines of measurements and the distance of their points. Where the grain that is fine enough has no points yet, a finer one is
// read, and where it has none any longer, a coarser one; there the distance is larger. A gap in the measurements is a gap.
func (s *Service) Read(ctx context.Context, q Query) (series.Lines, time.Duration, error) {
	ctx = store.StatementTimeout(ctx, readTime)
	step := stepOf(q.To.Sub(q.From), q.Points)
	r := reading{Service: s, ctx: ctx, Query: q, lines: series.Lines{}}
	if err := r.read(grainOf(step)); err != nil {
		return nil, 0, err
	}
	for _, of := range r.lines {
		for k, l := range of {
			r.trim(l)
			l.Coarsen(step)
			if len(l.Points) == 0 {
				delete(of, k)
			}
		}
	}
	return r.lines, step, nil
}

// readTime limits one statement.
const readTime = 10 * time.Second

// reading is one Read.
type reading struct {
	*Service
	ctx context.Context
	Query
	lines series.Lines
}

// piece is a range of time that is read from one grain.
type piece struct {
	grain    grain
	from, to time.Time
}

// read reads all pieces, the oldest first, so that points are in order.
func (r *reading) read(g grain) error {
	first, last, err := r.covered(g, r.From, r.To)
	if err != nil {
		return err
	}
	var pieces []piece
	if first.IsZero() {
		first, last = r.To, r.From // nothing here: all of it is read from finer and coarser grains
	} else {
		pieces = append(pieces, piece{g, maxTime(first, r.From), minTime(last, r.To)})
	}
	from := maxTime(last, r.From)
	for finer := g - 1; finer >= samples && from.Before(r.To); finer-- {
		a, b, err := r.covered(finer, from, r.To)
		if err != nil {
			return err
		}
		if a.IsZero() {
			continue
		}
		pieces = append(pieces, piece{finer, maxTime(a, from), minTime(b, r.To)})
		first, from = minTime(first, maxTime(a, from)), minTime(b, r.To)
	}
	for coarser := g + 1; coarser < grains && r.From.Before(first); coarser++ {
		a, b, err := r.covered(coarser, r.From, first)
		if err != nil {
			return err
		}
		if a.IsZero() {
			continue
		}
		pieces = append(pieces, piece{coarser, maxTime(a, r.From), minTime(b, first)})
		first = maxTime(a, r.From)
	}
	slices.SortFunc(pieces, func(a, b piece) int { return a.from.Compare(b.from) })
	for _, p := range pieces {
		if err := r.one(p); err != nil {
			return err
		}
	}
	return nil
}

// sourcesAt returns the sources whose chunks of a grain have the subjects.
func (r *reading) sourcesAt(g grain) []uuid.UUID {
	set := map[uuid.UUID]bool{}
	for subject, source := range r.Subjects {
		if g > samples {
			source = subject
		}
		set[source] = true
	}
	return store.IDs(set)
}

// covered returns when the chunks of a grain that touch a range begin and end; zero without any.
func (r *reading) covered(g grain, from, to time.Time) (first, end time.Time, err error) {
	start, _ := g.span(from)
	res, err := r.client.QueryContext(r.ctx, `SELECT min(start), max(start) FROM series_chunks WHERE source = ANY($1::uuid[]) AND "grain" = $2 AND start >= $3 AND start < $4`,
		r.sourcesAt(g), int16(g), start, to)
	if err != nil {
		return first, end, fmt.Errorf("find measurements: %w", err)
	}
	defer res.Close()
	var a, b *time.Time
	if res.Next() {
		if err := res.Scan(&a, &b); err != nil {
			return first, end, err
		}
	}
	if a == nil || b == nil {
		return first, end, res.Err()
	}
	first, _ = g.span(*a)
	_, end = g.span(*b)
	return first, end, res.Err()
}

func (r *reading) one(p piece) error {
	lines := series.Lines{}
	start, _ := p.grain.span(p.from)
	err := r.load(r.ctx, p.grain, r.sourcesAt(p.grain), start, p.to, lines, func(subject uuid.UUID, k series.Key) bool {
		_, ok := r.Subjects[subject]
		return ok && (len(r.Metrics) == 0 || slices.Contains(r.Metrics, k.Name))
	})
	if err != nil {
		return err
	}
	for subject, of := range lines {
		for k, l := range of {
			l.Points = slices.DeleteFunc(l.Points, func(x series.Point) bool { return x.At.Before(p.from.Truncate(p.grain.step())) || !x.At.Before(p.to) })
			r.lines.Line(subject, k).Append(*l)
		}
	}
	return nil
}

// trim removes points outside the range; that in which the range begins stays.
func (r *reading) trim(l *series.Line) {
	l.Points = slices.DeleteFunc(l.Points, func(p series.Point) bool { return !p.At.Before(r.To) })
}

// load decodes the chunks of sources in a range.
func (s *Service) load(ctx context.Context, g grain, sources []uuid.UUID, from, to time.Time, into series.Lines, want func(uuid.UUID, series.Key) bool) error {
	res, err := s.client.QueryContext(ctx, `SELECT start, data FROM series_chunks WHERE source = ANY($1::uuid[]) AND "grain" = $2 AND start >= $3 AND start < $4 ORDER BY start`,
		sources, int16(g), from, to)
	if err != nil {
		return fmt.Errorf("read measurements: %w", err)
	}
	defer res.Close()
	for res.Next() {
		var start time.Time
		var data []byte
		if err := res.Scan(&start, &data); err != nil {
			return err
		}
		if err := s.codec.Decode(start.UTC(), data, into, want); err != nil {
			return err
		}
	}
	return res.Err()
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// String returns the name of the grain in messages and metrics.
func (g grain) String() string { return strings.Fields("samples minutes hours days")[g] }
