package modelmock

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// meter has the metrics of an engine, with the names of vLLM 0.10
// (https://docs.vllm.ai/en/v0.10.0/usage/metrics.html).
type meter struct {
	registry                         *prometheus.Registry
	running, waiting                 prometheus.Gauge
	prompt, generated, queries, hits prometheus.Counter
	succeeded, aborted               prometheus.Counter
	firstToken                       prometheus.Observer
}

func newMeter(e *Engine) *meter {
	registry := prometheus.NewRegistry()
	f := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"model_name": e.cfg.Model}, registry))
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Name: "vllm:" + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "vllm:" + name, Help: help})
	}
	finished := f.NewCounterVec(prometheus.CounterOpts{Name: "vllm:request_success_total", Help: "Requests that ended, by reason."}, []string{"finished_reason"})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "vllm:gpu_cache_usage_perc", Help: "Used fraction of the KV cache."}, e.cache.use)
	return &meter{
		registry:  registry,
		running:   gauge("num_requests_running", "Sequences that are processed."),
		waiting:   gauge("num_requests_waiting", "Sequences that wait."),
		prompt:    counter("prompt_tokens_total", "Tokens of prompts."),
		generated: counter("generation_tokens_total", "Tokens of answers."),
		queries:   counter("gpu_prefix_cache_queries_total", "Tokens that were looked up in the prefix cache."),
		hits:      counter("gpu_prefix_cache_hits_total", "Tokens that the prefix cache had."),
		succeeded: finished.WithLabelValues("stop"),
		aborted:   finished.WithLabelValues("abort"),
		firstToken: f.NewHistogram(prometheus.HistogramOpts{
			Name: "vllm:time_to_first_token_seconds", Help: "Time from the request to the first token.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
	}
}
