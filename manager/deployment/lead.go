package deployment

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/deployment/expression"
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/deployment/scale"
)

const (
	// lookEvery is the time between two looks at all deployments that no event announced.
	lookEvery = time.Second
	// together is the time for which events are collected, so that many of them cause one look.
	together   = 20 * time.Millisecond
	sweepEvery = time.Hour
)

// term is the work of one leader.
type term struct {
	*Service
	probes   *probes
	sessions map[uuid.UUID]bool // of the replicas
	// calls are the calls for numbers since the last one that was stored.
	calls map[uuid.UUID]scale.State
	// retry is when the session of a replica can be requested again after a refusal.
	retry map[uuid.UUID]time.Time
	// expressions are those of all rules, by their text.
	expressions map[string]*expression.Expression
	evaluator   *expression.Engine
	// loads are those that were last announced, and when.
	loads     map[uuid.UUID]load.Total
	announced time.Time
}

// Lead keeps the deployments served until ctx ends. Only the leader calls it.
func (s *Service) Lead(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	t := &term{Service: s, calls: map[uuid.UUID]scale.State{}, retry: map[uuid.UUID]time.Time{}, evaluator: expression.NewEngine()}
	t.probes = newProbes(s.Agents)
	defer t.probes.stop()
	events := s.Bus.Subscribe(ctx, event.Deployment, event.Session)
	tick := clock.NewTicker("deployments", lookEvery)
	defer tick.Stop()
	var swept time.Time
	for {
		if err := t.look(ctx); err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "look at deployments", "error", err)
		}
		if clock.Now().Sub(swept) >= sweepEvery {
			swept = clock.Now()
			if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
				s.Logger.WarnContext(ctx, "sweep deployments", "error", err)
			}
		}
		t.await(ctx, tick, events)
		if ctx.Err() != nil {
			return
		}
	}
}

// await returns when something may have to be done.
func (t *term) await(ctx context.Context, tick *clock.Ticker, events <-chan event.Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			return
		case <-t.probes.changed:
			return
		case e := <-events:
			if e.By == event.BySamples || e.By == event.ByReasons || e.Topic == event.Session && !t.sessions[e.ID] {
				continue
			}
			_ = clock.Pause(ctx, together)
			drain(events)
			return
		}
	}
}

// drain takes the events that have arrived, because the next look is about all of them.
func drain(events <-chan event.Event) {
	for range len(events) {
		<-events
	}
}
