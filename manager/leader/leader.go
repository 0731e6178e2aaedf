// Package leader elects the one manager that schedules sessions and drives the agents, and
// returns which manager that is. Fence makes the transactions of a replaced leader fail;
// services that only the leader runs import it.
package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/containerd/errdefs"
	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/discovery"
	"github.com/berthhq/berth/internal/viewer"
)

const (
	// election is the name of the managers' election in etcd.
	election = "/berth/leader"
	// lookTimeout limits the query for the leader; etcd answers in milliseconds.
	lookTimeout = 2 * time.Second
	// guardEvery is how often a leader checks whether its epoch is still the newest.
	guardEvery = 5 * time.Second
	// again is the pause after a leadership that ended early.
	again = time.Second
	// A leader that steps down gives others time to be elected; it waits longer while another
	// one leads.
	restLeast, restMost = 10 * time.Second, time.Minute
)

// ErrStepDown ends the leadership of a manager that should not lead while another one can.
var ErrStepDown = errors.New("stepping down")

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Etcd   *clientv3.Client
	// ID of this manager, and its address for nodes.
	ID, Address string
	Version     string                // of this manager, for users
	Registry    prometheus.Registerer // nil: no metrics
	Logger      *slog.Logger
}

// Service takes part in the election and knows the leader.
type Service struct {
	Config
	meter meter
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{Config: cfg, meter: newMeter(cfg.Registry)} }

// Leader is the manager that leads.
type Leader struct {
	ID      string    `json:"id"`
	Address string    `json:"address"` // for nodes
	Since   time.Time `json:"since"`
	Epoch   int64     `json:"epoch"`
}

// Current returns the leader, nil if no manager leads, and an error if etcd does not answer in
// time.
func (s *Service) Current(ctx context.Context) (*Leader, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	text, err := discovery.Leader(ctx, s.Etcd, election)
	if err != nil {
		return nil, err
	}
	var l Leader
	if json.Unmarshal([]byte(text), &l) != nil || l.Epoch == 0 {
		return nil, nil // the leader is elected, but does not lead yet
	}
	return &l, nil
}

// Run takes part in elections until ctx ends, and calls lead for every leadership.
func (s *Service) Run(ctx context.Context, lead func(ctx context.Context, epoch int64) error) {
	for ctx.Err() == nil {
		err := discovery.Campaign(ctx, s.Etcd, election, s.ID, func(ctx context.Context, t *discovery.Term) error {
			return s.term(viewer.SystemContext(ctx), t, lead)
		})
		if err == nil || ctx.Err() != nil {
			continue
		}
		if errors.Is(err, ErrStepDown) {
			s.Logger.Warn("another manager should lead", "error", err)
			s.rest(ctx)
			continue
		}
		s.Logger.Error("lead", "error", err)
		_ = clock.Pause(ctx, again)
	}
}

// rest waits before the next election, but not for long while no manager leads.
func (s *Service) rest(ctx context.Context) {
	begun := time.Now()
	_ = clock.Pause(ctx, restLeast)
	for ctx.Err() == nil && time.Since(begun) < restMost {
		if l, err := s.Current(ctx); err == nil && l == nil {
			return
		}
		_ = clock.Pause(ctx, again)
	}
}

// term begins the epoch of a won election, announces it, and leads until ctx ends or the epoch
// is superseded.
func (s *Service) term(ctx context.Context, t *discovery.Term, lead func(context.Context, int64) error) error {
	// The time is above every earlier epoch. Agents remember the highest epoch that they have
	// seen, which a restored database together with a new etcd does not know.
	epoch, err := RaiseFence(ctx, s.Client, max(t.Revision, clock.Now().Unix()), t.Confirm)
	if err != nil {
		return err
	}
	said, err := json.Marshal(Leader{ID: s.ID, Address: s.Address, Since: clock.Now(), Epoch: epoch})
	if err != nil {
		return fmt.Errorf("encode the leader: %w", err)
	}
	if err := t.Announce(ctx, string(said)); err != nil {
		return err
	}
	s.meter.begin()
	defer s.meter.end()
	s.Logger.Info("leading", "epoch", epoch)
	defer s.Logger.Info("no longer leading", "epoch", epoch)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.guard(ctx, epoch) })
	g.Go(func() error { return lead(ctx, epoch) })
	return g.Wait()
}

// guard returns when the epoch in the database differs, as after a restore of the database:
// this leader can no longer change anything, but a new one can.
func (s *Service) guard(ctx context.Context, epoch int64) error {
	tick := clock.NewTicker("fence", guardEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := Fenced(ctx, s.Client, epoch)
		switch {
		case err == nil || ctx.Err() != nil:
		case ent.IsNotFound(err), errdefs.IsAborted(err):
			return err
		default: // a leader tolerates a temporarily unavailable database
			s.Logger.Warn("read the leader's epoch", "error", err)
		}
	}
}
