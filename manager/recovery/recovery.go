// Package recovery is the recovery mode of the cluster: while it is on, nothing is ended or
// removed except on request, and no session starts. A leader turns it on if the database is
// older than the state of the agents, as after a restore from a backup. The manager and graph
// import it.
package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/clusteridentity"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

const (
	// beatEvery is how often the leader records the time. Objects from the last interval
	// before a backup are in the backup.
	beatEvery = 10 * time.Second
	// lookEvery is how soon a leader applies a change by another manager.
	lookEvery = time.Second
	// ledKey is the key of the recorded time in etcd.
	ledKey    = "/berth/led"
	etcdBound = 5 * time.Second
	maxReason = 300 // characters
)

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Etcd   *clientv3.Client
	// CA is the fingerprint of the cluster's CA: the recorded time of another cluster in the
	// same etcd does not count.
	CA string
	// Noted writes to the audit log that a leader turned the mode on.
	Noted  func(ctx context.Context, reason string)
	Logger *slog.Logger
}

// Service knows whether the cluster is in recovery mode. New creates one.
type Service struct {
	Config
	wake chan struct{}
	term term
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{Config: cfg, wake: make(chan struct{}, 1)} }

// State is the recovery mode while it is on.
type State struct {
	Since  time.Time
	Reason string
}

// SetRecoveryInput turns the mode on or off.
type SetRecoveryInput struct {
	On     bool
	Reason *string
}

// Payload is the mode after a change.
type Payload struct{ Recovery *State }

// Current returns the mode, nil while it is off.
func (s *Service) Current(ctx context.Context) (*State, error) {
	row, err := s.Client.ClusterIdentity.Query().Only(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read whether the cluster is in recovery mode: %w", err)
	}
	if row.RecoverySince == nil {
		return nil, nil
	}
	return &State{Since: *row.RecoverySince, Reason: row.RecoveryReason}, nil
}

// SetRecovery turns the mode on or off. The leader applies it within a second.
func (s *Service) SetRecovery(ctx context.Context, in SetRecoveryInput) (*Payload, error) {
	who, err := permit.Check(ctx, access.Update, access.System, access.Object{})
	if err != nil {
		return nil, err
	}
	reason := ""
	if in.Reason != nil {
		reason = strings.TrimSpace(*in.Reason)
	}
	if len([]rune(reason)) > maxReason {
		return nil, problem.Invalid("reason", "has more than %d characters", maxReason)
	}
	if !in.On {
		if _, err := s.row().ClearRecoverySince().SetRecoveryReason("").Save(viewer.SystemContext(ctx)); err != nil {
			return nil, fmt.Errorf("leave recovery mode: %w", err)
		}
		s.signal()
		return &Payload{}, nil
	}
	if reason == "" {
		reason = "turned on by " + who.Email
	}
	if _, err := s.enter(ctx, reason); err != nil {
		return nil, err
	}
	state, err := s.Current(ctx)
	return &Payload{Recovery: state}, err
}

// row updates the single row.
func (s *Service) row() *ent.ClusterIdentityUpdate {
	return s.Client.ClusterIdentity.Update()
}

// enter turns the mode on, and reports whether it was off.
func (s *Service) enter(ctx context.Context, reason string) (bool, error) {
	n, err := s.row().Where(clusteridentity.RecoverySinceIsNil()).
		SetRecoverySince(clock.Now()).SetRecoveryReason(reason).Save(viewer.SystemContext(ctx))
	if err != nil {
		return false, fmt.Errorf("enter recovery mode: %w", err)
	}
	s.signal()
	return n > 0, nil
}

// find turns the mode on because a leader found that the database is outdated.
func (s *Service) find(ctx context.Context, reason string) error {
	was, err := s.enter(ctx, reason)
	if err != nil || !was {
		return err
	}
	s.Logger.Warn("recovery mode is on", "reason", reason)
	if s.Noted != nil {
		s.Noted(ctx, reason)
	}
	return nil
}

func (s *Service) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// led is the value in etcd: when a leader last worked, and on which cluster.
type led struct {
	CA string    `json:"ca"`
	At time.Time `json:"at"`
}

// noted returns the time in etcd; zero if there is none of this cluster.
func (s *Service) noted(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdBound)
	defer cancel()
	resp, err := s.Etcd.Get(ctx, ledKey)
	if err != nil {
		return time.Time{}, fmt.Errorf("read when a leader last worked: %w", err)
	}
	var l led
	if len(resp.Kvs) == 0 || json.Unmarshal(resp.Kvs[0].Value, &l) != nil || l.CA != s.CA {
		return time.Time{}, nil
	}
	return l.At, nil
}

// beat records the time: first in the database, so that etcd is never ahead of a database that
// has lost nothing.
func (s *Service) beat(ctx context.Context) error {
	now := clock.Now()
	_, err := s.row().Where(clusteridentity.Or(clusteridentity.LedAtIsNil(), clusteridentity.LedAtLT(now))).SetLedAt(now).Save(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("record the time: %w", err)
	}
	text, err := json.Marshal(led{s.CA, now})
	if err != nil {
		return fmt.Errorf("encode the time: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, etcdBound)
	defer cancel()
	if _, err := s.Etcd.Put(ctx, ledKey, string(text)); err != nil {
		return fmt.Errorf("record the time in etcd: %w", err)
	}
	return nil
}
