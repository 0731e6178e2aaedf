// Package series keeps the measurements of containers, machines and deployments over time (ADR 52).
//
// Every manager collects the samples that its agents send, and stores them minute by minute. The leader merges the samples of
// an hour into minutes, the minutes of a day into hours, and the hours of a month into days. Each grain has its own retention.
// Samples that a killed manager had not stored yet are lost: the history has a gap there.
package series

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/manager/deployment/load"
)

// grain is how fine the points of a chunk are.
type grain int16

// The grains, the finest first.
const (
	samples grain = iota
	minutes
	hours
	days

	grains
)

// step is the distance of two points.
func (g grain) step() time.Duration {
	return [grains]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}[g]
}

// span returns when the chunk of a time begins and ends. All are in UTC, which has no changes of the clock.
func (g grain) span(at time.Time) (start, end time.Time) {
	at = at.UTC()
	switch g {
	case samples:
		start = at.Truncate(time.Minute)
		return start, start.Add(time.Minute)
	case minutes:
		start = at.Truncate(time.Hour)
		return start, start.Add(time.Hour)
	case hours:
		start = at.Truncate(24 * time.Hour)
		return start, start.AddDate(0, 0, 1)
	default:
		start = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		return start, start.AddDate(0, 1, 0)
	}
}

// Service stores, merges and reads measurements.
type Service struct {
	client  *ent.Client
	reports *load.Store
	codec   *series.Codec
	log     *slog.Logger
	meter   *meter
	open    open
	merged  [grains]time.Time // the last span that this leader merged
}

// Config has the dependencies of a Service.
type Config struct {
	Client   *ent.Client
	Loads    *load.Store // what gateways measure of deployments
	Registry prometheus.Registerer
	Logger   *slog.Logger
}

// New returns a Service. Run stores what it collects, and Lead merges it.
func New(cfg Config) (*Service, error) {
	codec, err := series.NewCodec()
	if err != nil {
		return nil, fmt.Errorf("compress measurements: %w", err)
	}
	return &Service{client: cfg.Client, reports: cfg.Loads, codec: codec, log: cfg.Logger, meter: newMeter(cfg.Registry), open: open{by: map[uuid.UUID]*minute{}}}, nil
}
