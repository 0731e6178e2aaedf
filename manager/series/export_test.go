package series

import (
	"context"
	"time"

	"github.com/google/uuid"
	dto "github.com/prometheus/client_model/go"

	"github.com/berthhq/berth/internal/report"
)

// RecordAt is Record at a given time.
func (s *Service) RecordAt(at time.Time, source uuid.UUID, subjects map[uuid.UUID][]report.Metric) {
	s.record(at, source, subjects)
}

// Store stores the minutes that are complete at a time.
func (s *Service) Store(ctx context.Context, now time.Time) { s.store(ctx, s.take(now)) }

// StepOf and MaxUnstored are for tests.
var StepOf = stepOf

const MaxUnstored = maxUnstored

// Dropped returns the number of samples that were lost.
func (s *Service) Dropped() float64 {
	var m dto.Metric
	if err := s.meter.dropped.Write(&m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue()
}
