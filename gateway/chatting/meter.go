package chatting

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// meter are the metrics of chats. None has a label for a chat, a model or a person.
type meter struct {
	answers *prometheus.CounterVec
	first   prometheus.Histogram
	running prometheus.Gauge
}

func newMeter(to prometheus.Registerer) *meter {
	with := promauto.With(to)
	return &meter{
		answers: with.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_chat_answers_total", Help: "Answers of chats that this gateway has ended, by status.",
		}, []string{"status"}),
		first: with.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_chat_first_token_seconds", Help: "Time until the first token of an answer of a chat.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}),
		running: with.NewGauge(prometheus.GaugeOpts{Name: "berth_chat_running_answers", Help: "Answers of chats that this gateway runs."}),
	}
}
