package serving

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/gateway/inference"
)

// meter are the metrics of served models. None has a label for a deployment, a key or a person, of which there are too
// many: their numbers are in the API.
type meter struct {
	requests  *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	firstByte prometheus.Histogram
	retries   prometheus.Counter
	prompts   *prometheus.CounterVec
	open      prometheus.Gauge
	waiting   prometheus.Gauge
	ejected   prometheus.Gauge
}

func newMeter(to prometheus.Registerer) *meter {
	with := promauto.With(to)
	gauge := func(name, help string) prometheus.Gauge {
		return with.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &meter{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_models_requests_total", Help: "Requests to models, by the path of the API and the class of the answer.",
		}, []string{"api", "status"}),
		tokens: with.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_models_tokens_total", Help: "Tokens that engines counted, by direction.",
		}, []string{"direction"}),
		firstByte: with.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_models_first_byte_seconds", Help: "Time until an engine begins its answer.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}),
		prompts: with.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_models_recorded_requests_total", Help: "Requests to deployments that record them, by result.",
		}, []string{"result"}),
		retries: with.NewCounter(prometheus.CounterOpts{Name: "berth_models_retries_total", Help: "Requests that were sent to a further replica."}),
		open:    gauge("berth_models_open_requests", "Requests to models that are at a replica."),
		waiting: gauge("berth_models_waiting_requests", "Requests that wait for a replica."),
		ejected: gauge("berth_models_ejected_replicas", "Replicas that get no requests, because several failed."),
	}
	for _, result := range []string{"stored", "dropped"} {
		m.prompts.WithLabelValues(result)
	}
	for _, direction := range []string{"prompt", "completion", "cached"} {
		m.tokens.WithLabelValues(direction)
	}
	return m
}

// count counts a request that has ended.
func (m *meter) count(r inference.Record) {
	m.tokens.WithLabelValues("prompt").Add(float64(r.Usage.Prompt))
	m.tokens.WithLabelValues("completion").Add(float64(r.Usage.Completion))
	m.tokens.WithLabelValues("cached").Add(float64(r.Usage.Cached))
	if r.Tries > 1 {
		m.retries.Add(float64(r.Tries - 1))
	}
	if r.FirstByte > 0 {
		m.firstByte.Observe((r.FirstByte - r.Waited).Seconds())
	}
}

// answered counts an answer by the pattern of its address, which has no name of a model.
func (m *meter) answered(pattern string, status int) {
	_, path, _ := strings.Cut(pattern, " ")
	path = strings.TrimPrefix(path, "/deployments/{name}")
	if path == "" || path == "/" {
		path = "other"
	}
	m.requests.WithLabelValues(path, strconv.Itoa(status/100)+"xx").Inc()
}
