package expression

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Limits of one evaluation.
const (
	maxSamples = 1_000_000
	maxTime    = 2 * time.Second
)

// Engine evaluates expressions.
type Engine struct{ engine *promql.Engine }

// NewEngine returns an engine.
func NewEngine() *Engine {
	return &Engine{promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxSamples, Timeout: maxTime, LookbackDelta: lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return usualStep.Milliseconds() },
	})}
}

// Value returns the value of an expression over the histories of all ready replicas: several values are added if sum is true, and
// averaged otherwise. It is unknown if a replica has no current samples, or if the result is empty or not a number.
func (g *Engine) Value(ctx context.Context, e *Expression, now time.Time, over []*History, sum bool) (value float64, known bool, err error) {
	for _, h := range over {
		if !h.current(now) {
			return 0, false, nil
		}
	}
	q, err := g.engine.NewInstantQuery(ctx, queryable(over), nil, e.text, now)
	if err != nil {
		return 0, false, fmt.Errorf("expression %s: %w", e.text, err)
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return 0, false, fmt.Errorf("expression %s: %w", e.text, result.Err)
	}
	n := 1
	switch v := result.Value.(type) {
	case promql.Scalar:
		value = v.V
	case promql.Vector:
		for _, x := range v {
			value += x.F
		}
		n = len(v)
	}
	if n > 1 && !sum {
		value /= float64(n)
	}
	return value, n > 0 && !math.IsNaN(value) && !math.IsInf(value, 0), nil
}

// queryable gives promql the samples of histories.
type queryable []*History

// Querier implements storage.Queryable.
func (q queryable) Querier(from, to int64) (storage.Querier, error) {
	return querier{q, from, to}, nil
}

type querier struct {
	over     []*History
	from, to int64
}

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, sorted bool, hints *storage.SelectHints, by ...*labels.Matcher) storage.SeriesSet {
	from, to := q.from, q.to
	if hints != nil {
		from, to = hints.Start, hints.End
	}
	set := &seriesSet{at: -1}
	for _, h := range q.over {
		for _, s := range h.find(from, to, by) {
			points := make([]chunks.Sample, len(s.points))
			for i, p := range s.points {
				points[i] = sample(p)
			}
			set.all = append(set.all, storage.NewListSeries(s.labels, points))
		}
	}
	if sorted {
		slices.SortFunc(set.all, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	}
	return set
}

// LabelValues implements storage.Querier. Expressions do not ask for it.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.Querier. Expressions do not ask for it.
func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (querier) Close() error { return nil }

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *seriesSet) At() storage.Series                { return s.all[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// sample implements chunks.Sample.
type sample point

func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
