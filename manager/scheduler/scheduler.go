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

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/overlay"
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
	orphans  func(agent uuid.UUID) map[string]resource.Slots // nil: none
	images   func(agent string) map[string]bool              // nil: no one knows
	networks overlay.Range                                   // of sessions over several agents
	meter    meter
}

// New returns a Scheduler.
func New(client *ent.Client, bus *event.Bus, policies *policy.Service, log *slog.Logger) *Scheduler {
	return &Scheduler{
		networks: overlay.Default(), meter: newMeter(nil),
		client: client, bus: bus, policies: policies, log: log,
		past: newLately[[]plan.Usage](), asked: newLately[[]plan.Demand](), roster: roster{turn: semaphore.NewWeighted(1)},
	}
}

// Spare makes the scheduler treat the slots of orphaned containers as used.
func (s *Scheduler) Spare(orphans func(agent uuid.UUID) map[string]resource.Slots) {
	s.orphans = orphans
}

// Join makes the scheduler take the networks of sessions over several agents from r.
func (s *Scheduler) Join(r overlay.Range) { s.networks = r }

// Prefer makes the scheduler prefer, of equally good agents, one that has the image.
func (s *Scheduler) Prefer(images func(agent string) map[string]bool) { s.images = images }

// spare subtracts the slots of orphans from the capacity of agents: the amounts of
// processors and memory, and whole accelerators.
func (s *Scheduler) spare(agents []plan.Agent) {
	if s.orphans == nil {
		return
	}
	for i := range agents {
		held := s.orphans(agents[i].ID)
		for j := range agents[i].Devices {
			d := &agents[i].Devices[j]
			slots := held[d.Name]
			if len(slots) == 0 {
				continue
			}
			d.Capacity = d.Capacity.Clone()
			for slot, amount := range slots {
				d.Capacity[slot] = max(d.Capacity[slot]-amount, 0)
				d.Healthy = d.Healthy && (slot == resource.CPU || slot == resource.Mem)
			}
		}
	}
}

// Lead schedules until ctx ends.
func (s *Scheduler) Lead(ctx context.Context, epoch int64) {
	t := s.newTerm(ctx, epoch)
	var both sync.WaitGroup
	both.Go(func() { t.run(ctx) })
	both.Go(func() { t.told.run(ctx) })
	both.Wait()
}
