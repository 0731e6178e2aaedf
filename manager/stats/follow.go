package stats

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
)

// Sample is the samples of one kernel at one moment.
type Sample struct {
	ID uuid.UUID
	report.Stats
}

// Follow sends the samples of the kernels as they arrive, until ctx ends. A slow reader misses
// samples and gets later ones.
func (s *Service) Follow(ctx context.Context, kernels []uuid.UUID) <-chan Sample {
	events := s.bus.Subscribe(ctx, Topic)
	out := make(chan Sample)
	go func() {
		defer close(out)
		for e := range events {
			if !slices.Contains(kernels, e.ID) {
				continue
			}
			var st report.Stats
			if err := json.Unmarshal(e.Data, &st); err != nil {
				s.log.Warn("unreadable samples", "kernel", e.ID, "error", err)
				continue
			}
			select {
			case <-ctx.Done():
				return
			case out <- Sample{e.ID, st}:
			}
		}
	}()
	return out
}
