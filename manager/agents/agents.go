// Package agents manages the worker machines: it owns the tunnels to the agents, stores their
// rows and devices as they report them, marks lost agents, and lets new ones join.
package agents

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/enrolment"
)

// An Observer receives the reports of agents about kernels.
type Observer interface {
	// Adopt is called with every kernel that an agent knows, before the report makes the agent
	// available for placements.
	Adopt(ctx context.Context, agent uuid.UUID, kernels []*agentpb.KernelState) error
	// ObserveAll is called with every kernel that an agent knows, when its stream begins. A
	// kernel that the list does not have is not on the agent.
	ObserveAll(ctx context.Context, agent uuid.UUID, kernels []*agentpb.KernelState)
	// Observe is called when one kernel has changed.
	Observe(ctx context.Context, agent uuid.UUID, kernel *agentpb.KernelState)
	// ObservePull is called while an agent pulls an image.
	ObservePull(ctx context.Context, agent uuid.UUID, pull *agentpb.PullProgress)
}

// Recorder stores the samples of agents.
type Recorder interface {
	Record(ctx context.Context, agent uuid.UUID, r *agentpb.StatsReport)
}

// Config has the dependencies of a Service.
type Config struct {
	Client     *ent.Client
	Bus        *event.Bus
	Samples    Recorder
	Enrolments *enrolment.Service // checks that machines belong to the cluster; nil: all do
	// Fingerprint of the cluster CA, which a joining machine checks.
	Fingerprint string
	// ID of this manager; other managers see it with the agents that this one reaches.
	ID string
	// MassLoss is the fraction of a group's agents that can be unreachable before evictions
	// stop in the group; zero means 0.5.
	MassLoss float64
	// Managers returns the addresses that agents should connect to.
	Managers func() []string
	Logger   *slog.Logger
}

// Service is the manager's view of all agents.
type Service struct {
	Config

	mu    sync.Mutex
	conns map[string]*conn // by agent name
	lead  *leadership      // nil while another manager leads
	outed []Disruption     // as of the leader's last check
	knows bool             // whether this leader has checked since its election
}

// leadership is the time of one leader, with its epoch.
type leadership struct {
	ctx      context.Context
	epoch    int64
	observer Observer
}

// conn is a live tunnel.
type conn struct {
	rpc     agentpb.AgentClient
	peer    *cluster.Peer
	changed chan struct{}   // closed when the watch should restart
	images  map[string]bool // replaced, never modified

	// The following fields belong to the goroutine that watches.
	conditions []report.Condition
	offsets    []time.Duration // differences between the agent's clock and the manager's, at the last heartbeats
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{Config: cfg, conns: map[string]*conn{}} }

// Lead makes this manager record the reports of agents and mark agents without heartbeats as
// lost, until ctx ends.
func (s *Service) Lead(ctx context.Context, epoch int64, observer Observer) {
	ctx = viewer.SystemContext(ctx)
	s.setLead(&leadership{ctx: ctx, epoch: epoch, observer: observer})
	defer s.setLead(nil)
	tick := clock.NewTicker("lost agents", 3*time.Second)
	defer tick.Stop()
	since, forgot := map[uuid.UUID]time.Time{}, clock.Now()
	for {
		if err := s.lookForLost(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Error("look for lost agents", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// One timer for both: a select on two that fire at the same time chooses at random.
		if now := clock.Now(); now.Sub(forgot) >= forgetEvery {
			forgot = now
			if err := s.forgetDevices(ctx, since); err != nil && ctx.Err() == nil {
				s.Logger.Error("forget lost devices", "error", err)
			}
		}
	}
}

func (s *Service) setLead(l *leadership) {
	s.mu.Lock()
	s.lead, s.knows = l, false
	s.mu.Unlock()
	s.AnnounceManagers()
}

// AnnounceManagers restarts all watches, because a watch sends its agent the list of managers and
// whether this one leads.
func (s *Service) AnnounceManagers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// Connected serves one tunnel until it ends. It is the hub's OnPeer for agents.
func (s *Service) Connected(ctx context.Context, peer *cluster.Peer) {
	c := &conn{rpc: agentpb.NewAgentClient(peer.Conn), peer: peer, changed: make(chan struct{}), images: map[string]bool{}}
	s.mu.Lock()
	s.conns[peer.Name] = c
	s.mu.Unlock()
	s.Logger.Info("agent connected", "agent", peer.Name)
	defer func() {
		s.mu.Lock()
		if s.conns[peer.Name] == c {
			delete(s.conns, peer.Name)
		}
		s.mu.Unlock()
		s.Logger.Info("agent disconnected", "agent", peer.Name)
	}()
	for ctx.Err() == nil {
		s.mu.Lock()
		lead, changed := s.lead, c.changed
		s.mu.Unlock()
		if lead == nil {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		err := s.watchUntil(ctx, changed, c, lead)
		select {
		case <-changed:
			continue
		default:
		}
		if err != nil && ctx.Err() == nil && lead.ctx.Err() == nil {
			s.Logger.Warn("watch agent", "agent", peer.Name, "error", err)
			_ = clock.Pause(ctx, time.Second)
		}
	}
}

func (s *Service) watchUntil(ctx context.Context, changed <-chan struct{}, c *conn, lead *leadership) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
		case <-changed:
			cancel()
		}
	}()
	return s.watch(ctx, c, lead)
}

// watch follows one agent as leader until the tunnel or the leadership ends.
func (s *Service) watch(ctx context.Context, c *conn, lead *leadership) error {
	ctx, cancel := context.WithCancel(viewer.SystemContext(ctx))
	defer cancel()
	defer context.AfterFunc(lead.ctx, cancel)()
	stream, err := c.rpc.Watch(ctx, &agentpb.WatchRequest{Epoch: lead.epoch, Managers: s.Managers()})
	if err != nil {
		return errgrpc.ToNative(err)
	}
	id := uuid.Nil
	for {
		ev, err := stream.Recv()
		if err != nil {
			return errgrpc.ToNative(err)
		}
		if id == uuid.Nil && ev.GetReport() == nil {
			return fmt.Errorf("first event of agent %s is not a report: %w", c.peer.Name, errdefs.ErrFailedPrecondition)
		}
		switch e := ev.Event.(type) {
		case *agentpb.Event_Report:
			if id, err = s.record(ctx, c, e.Report, lead.observer); err != nil {
				return fmt.Errorf("record report of agent %s: %w", c.peer.Name, err)
			}
			lead.observer.ObserveAll(ctx, id, e.Report.Kernels)
		case *agentpb.Event_Kernel:
			lead.observer.Observe(ctx, id, e.Kernel)
		case *agentpb.Event_Pull:
			if e.Pull.Done {
				s.addImage(c, e.Pull.Reference)
				s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: id})
			}
			lead.observer.ObservePull(ctx, id, e.Pull)
		case *agentpb.Event_Stats:
			s.Samples.Record(ctx, id, e.Stats)
			s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: id, By: event.BySamples})
		case *agentpb.Event_Heartbeat:
			if err := s.seen(ctx, id, c, e.Heartbeat); err != nil {
				return err
			}
		}
	}
}

// seen records a heartbeat and the conditions of the agent. It sends an event only if the
// agent was lost before or a condition has changed.
func (s *Service) seen(ctx context.Context, id uuid.UUID, c *conn, beat *agentpb.Heartbeat) error {
	now := clock.Now()
	c.tick(now, beat.UnixMs)
	conditions, changed := c.judge(now, beat.Conditions)
	back, err := s.Client.Agent.Update().Where(agent.ID(id), agent.StatusEQ(agent.StatusLost)).
		SetStatus(agent.StatusAlive).ClearLostAt().Save(ctx)
	if err == nil {
		err = s.Client.Agent.UpdateOneID(id).SetLastSeenAt(now).SetConditions(conditions).Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("note heartbeat: %w", err)
	}
	c.conditions = conditions
	if changed {
		s.Logger.Warn("conditions of agent changed", "agent", c.peer.Name, "holding", report.Holding(conditions))
	}
	if back > 0 || changed {
		s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: id})
		s.Bus.Publish(ctx, event.Event{Topic: event.Pending})
	}
	return nil
}

func (s *Service) addImage(c *conn, reference string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.images = maps.Clone(c.images)
	c.images[reference] = true
}

// Images returns the references of the images on an agent, as far as this manager knows. The
// map is never modified.
func (s *Service) Images(name string) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conns[name]; c != nil {
		return c.images
	}
	return nil
}

// HasImage reports whether the agent has the image, as far as this manager knows.
func (s *Service) HasImage(name, reference string) bool {
	return s.Images(name)[reference]
}

// RPC returns the client of a connected agent. The error is of class unavailable if the agent
// is not connected.
func (s *Service) RPC(name string) (agentpb.AgentClient, error) {
	c, err := s.conn(name)
	if err != nil {
		return nil, err
	}
	return c.rpc, nil
}

// Streams returns an opener of streams to the kernels of a connected agent. The errors are those of
// RPC.
func (s *Service) Streams(name string) (portstream.Opener, error) {
	c, err := s.conn(name)
	if err != nil {
		return nil, err
	}
	return c.peer, nil
}

func (s *Service) conn(name string) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[name]
	if c == nil {
		return nil, fmt.Errorf("agent %s is not connected: %w", name, errdefs.ErrUnavailable)
	}
	return c, nil
}
