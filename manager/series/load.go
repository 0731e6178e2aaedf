package series

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/store"
)

// loadsEvery is the time between two samples of deployments. What gateways report is of the last minute.
const loadsEvery = 10 * time.Second

// loads records what the gateways measure of deployments.
func (s *Service) loads(ctx context.Context) {
	tick := time.NewTicker(loadsEvery)
	defer tick.Stop()
	for {
		if err := s.sampleLoads(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "record the load of deployments", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Service) sampleLoads(ctx context.Context) error {
	ctx = store.On(viewer.SystemContext(ctx), store.Leader)
	ids, err := s.client.Deployment.Query().Where(deployment.EndedAtIsNil()).IDs(ctx)
	if err != nil {
		return err
	}
	totals, err := s.reports.Read(ctx, ids...)
	if err != nil {
		return err
	}
	for id, t := range totals {
		s.Record(id, map[uuid.UUID][]report.Metric{id: metricsOf(t)})
	}
	return nil
}

// metricsOf returns the measures of a deployment. Latencies are missing without a request.
func metricsOf(t load.Total) []report.Metric {
	w := t.All(0)
	out := []report.Metric{
		{Name: "requests", Value: float64(t.InFlight), Unit: "count"},
		{Name: "waiting", Value: float64(t.Waiting), Unit: "count"},
		{Name: "replicas", Value: float64(len(t.Replicas)), Unit: "count"},
		{Name: "request_rate", Value: w.Rate(w.Requests), Unit: "per second"},
		{Name: "prompt_token_rate", Value: w.Rate(w.Prompt), Unit: "per second"},
		{Name: "token_rate", Value: w.Rate(w.Completion), Unit: "per second"},
	}
	if w.Requests > 0 {
		out = append(out, report.Metric{Name: "error_share", Value: 100 * load.Share(w.Errors, w.Requests), Unit: "percent", Capacity: 100})
	}
	if w.Prompt > 0 {
		out = append(out, report.Metric{Name: "cached_share", Value: 100 * load.Share(w.Cached, w.Prompt), Unit: "percent", Capacity: 100})
	}
	for _, q := range []struct {
		name  string
		of    load.Histogram
		share float64
	}{
		{"first_byte_p50", w.FirstByte, 0.5}, {"first_byte_p95", w.FirstByte, 0.95},
		{"per_token_p50", w.PerToken, 0.5}, {"per_token_p95", w.PerToken, 0.95},
	} {
		if d, known := q.of.Quantile(q.share); known {
			out = append(out, report.Metric{Name: q.name, Value: float64(d) / float64(time.Millisecond), Unit: "ms"})
		}
	}
	for i := range out {
		out[i].Quality = "measured"
	}
	return out
}
