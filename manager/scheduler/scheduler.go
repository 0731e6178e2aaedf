// Package scheduler decides which waiting session starts where. The leader keeps a model of the
// cluster in memory, updates it by events and by its own commits, and compares it with the rows at
// intervals. The planner decides, without I/O, and the decisions are committed in one fenced
// transaction. A waiting session gets its pending reason.
package scheduler

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
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

// Orphans returns the slots that orphaned containers use on an agent, by device. They count
// as used.
type Orphans interface {
	On(agent uuid.UUID) map[string]resource.Slots
}

// Images returns the references of the images on an agent, and what it lacks of others. Of equally good
// agents, the scheduler prefers one that has the image, and then one that lacks less of it.
type Images interface {
	Images(agent string) map[string]bool
	// Lacks returns the bytes of an image that an agent must fetch; known is false if no agent has the image.
	Lacks(agent, reference string) (bytes int64, known bool)
}

// Config has the dependencies of a Scheduler.
type Config struct {
	Client   *ent.Client
	Bus      *event.Bus
	Policies *policy.Service
	Orphans  Orphans               // nil: there are none
	Images   Images                // nil: unknown
	Networks overlay.Range         // for sessions on several agents; zero: overlay.Default
	Registry prometheus.Registerer // nil: no metrics
	Logger   *slog.Logger
}

// Scheduler is the loop around the planner.
type Scheduler struct {
	client   *ent.Client
	bus      *event.Bus
	policies *policy.Service
	log      *slog.Logger
	usage    *cached[[]plan.Usage]  // past usage of holders
	demand   *cached[[]plan.Demand] // shapes of the latest sessions
	cache    agentCache
	orphans  Orphans
	images   Images
	networks overlay.Range // of sessions over several agents
	meter    meter
}

// New returns a Scheduler.
func New(cfg Config) *Scheduler {
	return &Scheduler{
		client: cfg.Client, bus: cfg.Bus, policies: cfg.Policies, log: cfg.Logger, meter: newMeter(cfg.Registry),
		orphans: cfg.Orphans, images: cfg.Images, networks: cmp.Or(cfg.Networks, overlay.Default()),
		usage: newCached[[]plan.Usage](), demand: newCached[[]plan.Demand](), cache: agentCache{turn: semaphore.NewWeighted(1)},
	}
}

// subtractOrphans subtracts the slots of orphans from the capacity of agents: the amounts of
// processors and memory, and whole accelerators.
func (s *Scheduler) subtractOrphans(agents []plan.Agent) {
	if s.orphans == nil {
		return
	}
	for i := range agents {
		orphaned := s.orphans.On(agents[i].ID)
		for j := range agents[i].Devices {
			d := &agents[i].Devices[j]
			slots := orphaned[d.Name]
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
	both.Go(func() { t.reasons.run(ctx) })
	both.Wait()
}
