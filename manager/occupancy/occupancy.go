// Package occupancy compares the allocations in the database with the containers that agents
// run, reports the differences, and repairs those that are safe to repair. The leader does so
// once a minute, and administrators on request. Graph and the manager import it.
package occupancy

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/semaphore"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

const (
	// every is the interval of the leader's audits.
	every = time.Minute
	// recheck is the pause between the two comparisons of an audit: a change that is in
	// transit during the first is complete at the second.
	recheck = 3 * time.Second
	// soon is the interval after an audit that found differences.
	soon = 10 * time.Second
)

// Agents calls the agents.
type Agents interface {
	RPC(agent string) (agentpb.AgentClient, error)
}

// Sessions receives the reports of agents about their kernels.
type Sessions interface {
	ObserveAll(ctx context.Context, agent uuid.UUID, kernels []*agentpb.KernelState)
}

// Config has the dependencies of a Service.
type Config struct {
	Client   *ent.Client
	Bus      *event.Bus
	Agents   Agents
	Sessions Sessions
	// Recovering reports whether the cluster is in recovery mode, in which nothing is
	// repaired; nil: never.
	Recovering func(ctx context.Context) (bool, error)
	Registry   prometheus.Registerer // nil: no metrics
	Logger     *slog.Logger
}

// Service audits. New creates one.
type Service struct {
	Config
	drift    *prometheus.GaugeVec
	repaired *prometheus.CounterVec

	turn      *semaphore.Weighted // acquired during an audit; waiting callers return when their context ends
	lastDrift map[string]Drift    // the differences of this manager's last audit as leader; protected by turn

	mu    sync.Mutex // not locked during statements
	epoch int64      // epoch of this manager's leadership; 0 while it does not lead
}

// New returns a Service.
func New(cfg Config) *Service {
	s := &Service{Config: cfg, turn: semaphore.NewWeighted(1)}
	f := promauto.With(cfg.Registry)
	s.drift = f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "berth_occupancy_drift", Help: "Differences between the database and the agents at the leader's last audit.",
	}, []string{"kind"})
	s.repaired = f.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_occupancy_repairs_total", Help: "Differences between the database and the agents that were repaired.",
	}, []string{"kind"})
	for _, k := range Kinds {
		s.drift.WithLabelValues(string(k)).Set(0)
		s.repaired.WithLabelValues(string(k)).Add(0)
	}
	return s
}

// Audit is the result of one comparison.
type Audit struct {
	At          time.Time
	Agents      int      // that answered
	Silent      []string // that count as alive and did not answer
	Kernels     int      // that run on agents
	Allocations int      // live rows
	Drift       []Drift
}

// Lead audits at intervals until ctx ends. Only the leader calls it.
func (s *Service) Lead(ctx context.Context, epoch int64) {
	s.lead(epoch)
	defer s.lead(0)
	wakes := s.Bus.Subscribe(ctx, event.Occupancy)
	next := time.NewTimer(every)
	defer next.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case e, ok := <-wakes:
			if !ok || e.Topic == event.Lagged {
				continue
			}
			asked = true
		case <-next.C:
		}
		a, err := s.audit(ctx, asked)
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("audit occupancy", "error", err)
		}
		if a != nil && slices.ContainsFunc(a.Drift, func(d Drift) bool { return !d.unknown }) {
			next.Reset(soon)
		} else {
			next.Reset(every)
		}
	}
}

func (s *Service) lead(epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch = epoch
	if epoch == 0 { // the next leader reports it
		s.gauge(nil)
	}
}

// leads returns the epoch of this manager's leadership, or 0, and updates the metric if it
// leads.
func (s *Service) leads(found []Drift) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != 0 {
		s.gauge(found)
	}
	return s.epoch
}

func (s *Service) gauge(found []Drift) {
	count := map[Kind]int{}
	for _, d := range found {
		count[d.Kind]++
	}
	for _, k := range Kinds {
		s.drift.WithLabelValues(string(k)).Set(float64(count[k]))
	}
}

// Look compares the database and the agents, and changes nothing.
func (s *Service) Look(ctx context.Context) (*Audit, error) {
	if _, err := permit.Check(ctx, access.Read, access.System, access.Object{}); err != nil {
		return nil, err
	}
	return s.compareTwice(viewer.SystemContext(ctx))
}

// AuditOccupancy compares and, on the leader, repairs.
func (s *Service) AuditOccupancy(ctx context.Context) (*AuditPayload, error) {
	if _, err := permit.Check(ctx, access.Update, access.System, access.Object{}); err != nil {
		return nil, err
	}
	recovering, err := s.recovering(viewer.SystemContext(ctx))
	if err != nil {
		return nil, err
	}
	if recovering {
		return nil, problem.Precondition("the cluster is in recovery mode, and no session is ended: turn the mode off first")
	}
	a, err := s.audit(viewer.SystemContext(ctx), true)
	if err != nil {
		return nil, err
	}
	if len(a.Drift) > 0 {
		s.Bus.Publish(ctx, event.Event{Topic: event.Occupancy})
	}
	return &AuditPayload{Audit: a}, nil
}

func (s *Service) recovering(ctx context.Context) (bool, error) {
	if s.Recovering == nil {
		return false, nil
	}
	return s.Recovering(ctx)
}

// AuditPayload is the result of an audit on request.
type AuditPayload struct{ Audit *Audit }

// audit compares and, if this manager leads, repairs. Containers that the database has never
// known end only on request.
func (s *Service) audit(ctx context.Context, asked bool) (*Audit, error) {
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for another audit: %w", err)
	}
	defer s.turn.Release(1)
	a, err := s.compareTwice(ctx)
	if err != nil {
		return nil, err
	}
	epoch := s.leads(a.Drift)
	if epoch == 0 {
		return a, nil
	}
	s.logChanges(a.Drift)
	if recovering, err := s.recovering(ctx); err != nil || recovering {
		return a, err
	}
	for i := range a.Drift {
		d := &a.Drift[i]
		if d.repair == nil || d.unknown && !asked {
			continue
		}
		if err := d.repair(ctx, epoch); err != nil {
			s.Logger.Error("repair occupancy", "kind", d.Kind, "agent", d.Agent, "kernel", d.Kernel, "error", err)
			continue
		}
		d.Repaired = true
		s.repaired.WithLabelValues(string(d.Kind)).Inc()
	}
	return a, nil
}

// logChanges logs differences that are new since the last audit, and those that have disappeared; a
// difference without repair would otherwise fill the log. The caller holds turn.
func (s *Service) logChanges(found []Drift) {
	now := map[string]Drift{}
	for _, d := range found {
		key := fmt.Sprint(d.Kind, d.Agent, d.Device, d.Kernel, d.Detail)
		if now[key] = d; s.lastDrift[key].Kind == "" {
			s.Logger.Warn("occupancy differs", "kind", d.Kind, "agent", d.Agent, "device", d.Device, "kernel", d.Kernel, "detail", d.Detail)
		}
	}
	for key, d := range s.lastDrift {
		if now[key].Kind == "" {
			s.Logger.Info("occupancy no longer differs", "kind", d.Kind, "agent", d.Agent, "device", d.Device, "kernel", d.Kernel)
		}
	}
	s.lastDrift = now
}

// compareTwice returns the differences that two comparisons, a while apart, have in common.
func (s *Service) compareTwice(ctx context.Context) (*Audit, error) {
	first, err := s.compareOnce(ctx)
	if err != nil || len(first.Drift) == 0 {
		return first, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(recheck):
	}
	seen := map[sight]bool{}
	for _, d := range first.Drift {
		seen[d.sight()] = true
	}
	a, err := s.compareOnce(ctx)
	if err != nil {
		return nil, err
	}
	a.Drift = slices.DeleteFunc(a.Drift, func(d Drift) bool { return !seen[d.sight()] })
	return a, nil
}

// readReports returns the reports of all agents that count as alive.
func (s *Service) readReports(ctx context.Context, agents []*ent.Agent) map[uuid.UUID]*agentpb.Report {
	var mu sync.Mutex
	var wg sync.WaitGroup
	places := make(chan struct{}, atOnce)
	reports := map[uuid.UUID]*agentpb.Report{}
	for _, a := range agents {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			r, err := s.report(ctx, a.Name)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			reports[a.ID] = r
		})
	}
	wg.Wait()
	return reports
}

const (
	atOnce = 32               // concurrent requests to agents
	answer = 10 * time.Second // time limit of an answer
)

// report gets the report of one agent, which is the first event of a watch.
func (s *Service) report(ctx context.Context, agent string) (*agentpb.Report, error) {
	rpc, err := s.Agents.RPC(agent)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	stream, err := rpc.Watch(ctx, &agentpb.WatchRequest{})
	if err != nil {
		return nil, err
	}
	e, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	return e.GetReport(), nil
}
