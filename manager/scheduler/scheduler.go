// Package scheduler decides which waiting session starts where. The leader keeps
// a model of the cluster in memory, brought up to date by events and by its own
// commits and compared with the rows now and then; the pure planner decides, and
// what it decided is committed in one fenced transaction. What waits gets its
// reasons.
package scheduler

import (
	"context"
	"log/slog"
	"sync"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// maxBatch bounds one transaction.
const maxBatch = 500

// Scheduler is the loop around the planner.
type Scheduler struct {
	client   *ent.Client
	bus      *event.Bus
	policies *policy.Service
	log      *slog.Logger
	past     *lately[[]plan.Usage]  // what holders took
	asked    *lately[[]plan.Demand] // what the latest sessions asked for
	roster   roster
}

// New returns a Scheduler.
func New(client *ent.Client, bus *event.Bus, policies *policy.Service, log *slog.Logger) *Scheduler {
	return &Scheduler{client: client, bus: bus, policies: policies, log: log, past: &lately[[]plan.Usage]{}, asked: &lately[[]plan.Demand]{}}
}

// Lead schedules until ctx ends.
func (s *Scheduler) Lead(ctx context.Context, epoch int64) {
	t := s.newTerm(ctx, epoch)
	var both sync.WaitGroup
	both.Go(func() { t.run(ctx) })
	both.Go(func() { t.told.run(ctx) })
	both.Wait()
}
