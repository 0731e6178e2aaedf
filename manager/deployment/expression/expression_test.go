package expression

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/prometheus/common/model"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`avg(vllm:gpu_cache_usage_perc)`: "",
		`histogram_quantile(0.95, sum by (le) (rate(vllm:request_queue_time_seconds_bucket[2m])))`: "",
		`max_over_time(sum(up)[10m:5s])`:         "",
		`42`:                                     "",
		`sum(rate(x[14m] offset 1m))`:            "",
		``:                                       "no expression found",
		`sum(rate(x[5m])`:                        "at character 16: unclosed left parenthesis",
		`sum(x))`:                                "unexpected right parenthesis",
		`vllm:x[5m]`:                             "range vector",
		`"text"`:                                 "string",
		`rate(x[16m])`:                           "looks back 16m0s, more than 15m0s",
		`x offset 15m`:                           "at character 1: it looks back 16m0s",
		`max_over_time(rate(x[10m])[6m:1m])`:     "at character 20: it looks back 16m0s",
		`x @ 0`:                                  "@ and negative offsets",
		`x @ end()`:                              "@ and negative offsets",
		`x offset -1m`:                           "@ and negative offsets",
		`max_over_time(x[10m:1ms])`:              "step of a subquery is at least 1s",
		`sum({__name__=~".*"})`:                  "at least one non-empty matcher",
		`x + ` + strings.Repeat("1+", 500) + "1": "more than 1000",
		`nosuch(x)`:                              "unknown function",
	} {
		_, err := Parse(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !errdefs.IsInvalidArgument(err) || !strings.Contains(err.Error(), want)):
			t.Errorf("%.100s: %v, want %s", text, err, want)
		}
	}
}

// feed adds a minute of samples every 5 s: a gauge, a counter that grows by rate in a second, and a histogram.
func feed(h *History, end time.Time, gauge, rate float64) {
	for i := range 13 {
		at := end.Add(time.Duration(i-12) * 5 * time.Second)
		sec := float64(i) * 5
		add := func(name string, value float64, more ...string) *model.Sample {
			m := model.Metric{"__name__": model.LabelValue(name)}
			for j := 0; j < len(more); j += 2 {
				m[model.LabelName(more[j])] = model.LabelValue(more[j+1])
			}
			return &model.Sample{Metric: m, Value: model.SampleValue(value)}
		}
		h.Add(at, model.Vector{
			add("kv", gauge), add("tokens_total", rate*sec, "replica", "own"), add("other", 1),
			add("queue_bucket", sec, "le", "1"), add("queue_bucket", 10*sec, "le", "2"), add("queue_bucket", 10*sec, "le", "+Inf"),
		})
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	g := NewEngine()
	for _, c := range []struct {
		text  string
		sum   bool
		want  float64
		known bool
	}{
		{"kv", false, 0.5, true},
		{"kv", true, 1, true},
		{"avg(kv)", false, 0.5, true},
		{"max(kv) * 100", false, 80, true},
		{"sum(rate(tokens_total[1m]))", false, 30, true},
		{`sum(rate(tokens_total{exported_replica="own"}[1m]))`, false, 30, true},
		{`sum(rate(tokens_total{replica="a"}[1m]))`, false, 10, true},
		{"histogram_quantile(0.95, sum by (le) (rate(queue_bucket[1m])))", false, 1.9444, true},
		{"max_over_time(sum(kv)[30s:])", false, 1, true},
		{"scalar(sum(kv))", false, 1, true},
		{"absent_metric", false, 0, false},
		{"kv / 0", false, 0, false},
	} {
		e, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		a, b := NewHistory("a"), NewHistory("b")
		for _, h := range []*History{a, b} {
			h.Want([]*Expression{e})
		}
		feed(a, now, 0.2, 10)
		feed(b, now, 0.8, 20)
		got, known, err := g.Value(t.Context(), e, now, []*History{a, b}, c.sum)
		if err != nil || known != c.known || known && math.Abs(got-c.want) > 0.001 {
			t.Errorf("%s: %v, %v, %v, want %v", c.text, got, known, err, c.want)
		}
		if _, known, _ = g.Value(t.Context(), e, now, []*History{a, NewHistory("c")}, c.sum); known {
			t.Errorf("%s is known although a replica has no samples", c.text)
		}
		if _, known, _ = g.Value(t.Context(), e, now.Add(lookback+time.Second), []*History{a, b}, c.sum); known {
			t.Errorf("%s is known although the samples are old", c.text)
		}
	}
}

// A history keeps what its expressions read, for as long as they look back, and not more than its limit.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	e, err := Parse(`sum(rate({__name__=~"m.*"}[5m]))`)
	if err != nil {
		t.Fatal(err)
	}
	h, now := NewHistory("a"), time.Unix(1_800_000_000, 0)
	h.Want([]*Expression{e})
	series := func(n int) (out model.Vector) {
		for i := range n {
			out = append(out, &model.Sample{Metric: model.Metric{"__name__": model.LabelValue(fmt.Sprint("m", i))}}, &model.Sample{Metric: model.Metric{"__name__": "other"}})
		}
		return out
	}
	for i := range 1000 { // more than an hour
		h.Add(now.Add(time.Duration(i)*5*time.Second), series(2))
		h.Add(now.Add(time.Duration(i)*5*time.Second+time.Second), series(2)) // too early
	}
	now = now.Add(999 * 5 * time.Second)
	if len(h.all) != 2 {
		t.Fatalf("%d series are kept", len(h.all))
	}
	for _, s := range h.all {
		if n := len(s.points); n != 61 {
			t.Errorf("%d samples of 5 minutes are kept", n)
		}
	}
	if !h.current(now) {
		t.Error("the history is not current")
	}
	h.Add(now.Add(5*time.Second), series(maxSeries+1))
	if len(h.all) != maxSeries || h.current(now) {
		t.Errorf("%d series are kept, current: %v", len(h.all), h.current(now))
	}
	h.Want(nil)
	if len(h.all) != 0 {
		t.Errorf("%d series are kept that no expression reads", len(h.all))
	}
}
