package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/ent/sessionnetwork"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/session/logs"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/session/secrets"
)

const (
	workers = 16 // each mostly waits for an agent
	// passEvery is the interval at which changed sessions are checked, for events that were lost.
	passEvery = 5 * time.Second
	// wholeEvery is the interval of the pass over all live sessions.
	wholeEvery = time.Minute
	// retryAfter is the pause before a failed step is tried again.
	retryAfter = time.Second
	// startingAgain is the interval at which an agent is asked whether it still starts a kernel,
	// for a report of the agent that was lost.
	startingAgain = 5 * time.Second
)

// Marks of events that the reconciler ignores. It knows its own moves, and the next move of a
// waiting session is made by the scheduler.
const (
	byMoves    = "reconciler"
	byCreation = "creation"
)

// Lead drives all sessions until ctx ends. Only the elected leader calls it.
func (s *Service) Lead(ctx context.Context, epoch int64) {
	ctx = viewer.SystemContext(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	old := logs.Cleaner{Client: s.Client, Agents: s.Agents, Retention: s.LogRetention, Logger: s.Logger}
	wg.Go(func() { old.Run(ctx, epoch) })
	wg.Go(func() { s.endOverdue(ctx, epoch) })
	wg.Go(func() { s.followUp(ctx, epoch) })
	wg.Go(func() { s.followDrains(ctx, epoch) })
	wg.Go(func() { s.cancelWaitedOut(ctx, epoch) })
	wg.Go(func() { s.mounts.Follow(ctx, epoch) })
	wg.Go(func() { secrets.SealOld(ctx, s.Client, s.Keys, s.Logger) })
	s.drive(ctx, epoch, false)
}

// Recover is Lead in recovery mode: it only ends sessions whose end was requested.
func (s *Service) Recover(ctx context.Context, epoch int64) {
	s.drive(viewer.SystemContext(ctx), epoch, true)
}

// drive reconciles sessions until ctx ends; in recovery mode, only sessions that are ending.
func (s *Service) drive(ctx context.Context, epoch int64, recovering bool) {
	var wg sync.WaitGroup
	defer wg.Wait()
	events := s.Bus.Subscribe(ctx, event.Session)
	pulls := newPulls(s)
	defer pulls.running.Wait()
	for range workers {
		wg.Go(func() { s.work(ctx, epoch, pulls, recovering) })
	}
	tick := clock.NewTicker("sessions", passEvery)
	defer tick.Stop()
	s.seen.Clear()
	s.pass(ctx, true)
	whole := clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			all := clock.Now().Sub(whole) >= wholeEvery
			if all {
				whole = clock.Now()
			}
			s.pass(ctx, all)
		case e, ok := <-events:
			if !ok {
				return
			}
			if e.Topic == event.Lagged {
				s.pass(ctx, false)
				continue
			}
			if e.By != byMoves && e.By != byCreation && e.By != event.ByReasons {
				s.queue.Add(e.ID)
			}
		}
	}
}

func (s *Service) work(ctx context.Context, epoch int64, pulls *pulls, recovering bool) {
	for {
		id, ok := s.queue.Next(ctx)
		if !ok {
			return
		}
		ctx := s.onBehalf(ctx, id)
		again, err := s.reconcile(ctx, epoch, pulls, id, recovering)
		s.queue.Done(id)
		if err != nil && ctx.Err() == nil && !isAborted(err) {
			s.Logger.Warn("reconcile session", "session", id, "by", requestid.From(ctx), "error", err)
			again = retryAfter
		}
		if again > 0 {
			s.queue.AddAfter(id, again)
		}
	}
}

// troubled returns sessions with a kernel on an agent that they may have to leave: a drained or
// lost one. Such a change of an agent does not change the version of the session.
var troubled = session.HasKernelsWith(kernel.HasAgentWith(agent.Or(
	agent.StatusNEQ(agent.StatusAlive), agent.DrainActionNotNil())))

// pass queues the sessions that are between two states, that have changed since the last check, or
// that left something behind; with all, every live session. A session that only runs costs a
// fraction of one statement.
func (s *Service) pass(ctx context.Context, all bool) {
	live := []predicate.Session{session.TerminatedAtIsNil(), session.StatusNEQ(lifecycle.Pending)}
	if err := s.queueLive(ctx, live, all); err != nil && ctx.Err() == nil {
		s.Logger.Error("list live sessions", "error", err)
	}
	for _, id := range s.Orphans.Sessions() {
		s.queue.Add(id)
	}
}

func (s *Service) queueLive(ctx context.Context, live []predicate.Session, all bool) error {
	rows, err := s.Client.Session.Query().Where(live...).
		Select(session.FieldID, session.FieldVersion, session.FieldStatus).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if all || row.Status != lifecycle.Running {
			s.queue.Add(row.ID)
		}
	}
	for _, id := range s.seen.Unseen(rows) {
		s.queue.Add(id)
	}
	if all {
		return nil
	}
	away, err := s.Client.Session.Query().Where(append(live, troubled)...).IDs(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return err
	}
	for _, id := range away {
		s.queue.Add(id)
	}
	return nil
}

func isAborted(err error) bool { return errors.Is(err, errdefs.ErrAborted) }

// step is the state of one session during reconcile.
type step struct {
	*Service
	epoch  int64
	pulls  *pulls
	sess   *ent.Session
	readAt time.Time // or some moments before
}

// reconcile takes every step that is possible now. It returns the time of the next check if it
// waits for a change without an event.
func (s *Service) reconcile(ctx context.Context, epoch int64, pulls *pulls, id uuid.UUID, recovering bool) (time.Duration, error) {
	sess, readAt, err := s.current(ctx, id)
	if recovering && (ent.IsNotFound(err) || err == nil && (sess.Status != lifecycle.Terminating || s.outrun(sess))) {
		return 0, nil // the full pass at the end of the mode handles it
	}
	if ent.IsNotFound(err) { // it was purged
		step{s, epoch, pulls, &ent.Session{ID: id, Status: lifecycle.Terminated}, readAt}.endOrphans(ctx)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read session: %w", err)
	}
	s.seen.Put(id, sess.Version)
	st := step{s, epoch, pulls, sess, readAt}
	if !recovering {
		st.endOrphans(ctx)
	}
	for range 8 { // the largest number of moves of a session
		moved, again, err := st.take(ctx)
		if err != nil || !moved {
			return again, err
		}
	}
	return retryAfter, nil
}

// outrun reports whether an agent runs a later launch of a session's kernel than the
// database knows.
func (s *Service) outrun(sess *ent.Session) bool {
	for _, k := range sess.Edges.Kernels {
		for _, ob := range s.observed.All(k.ID) {
			if ob.LaunchEpoch > k.LaunchEpoch {
				return true
			}
		}
	}
	return false
}

// current returns a session as read does, and a time before it was read. A session whose containers
// have started since is not read again if its version is the same.
func (s *Service) current(ctx context.Context, id uuid.UUID) (*ent.Session, time.Time, error) {
	if known, at := s.kept.Take(id); known != nil && s.answered(known) {
		same, err := s.Client.Session.Query().Where(session.ID(id), session.StatusEQ(known.Status), session.Version(known.Version)).Exist(ctx)
		if same && err == nil {
			return known, at, nil
		}
	}
	now := clock.Now()
	sess, err := s.read(ctx, id)
	return sess, now, err
}

// answered reports whether no kernel of a session is still starting: each one runs or has ended.
func (s *Service) answered(sess *ent.Session) bool {
	for _, k := range sess.Edges.Kernels {
		ob, seen := s.observed.Current(k)
		if !seen || ob.Phase == agentpb.KernelState_CREATING || ob.Phase == agentpb.KernelState_UNKNOWN {
			return false
		}
	}
	return true
}

// read returns a session with all edges that its steps need. Between the session's moves, none of
// them changes, except for the changes that move makes on the entity.
func (s *Service) read(ctx context.Context, id uuid.UUID) (*ent.Session, error) {
	return s.Client.Session.Query().Where(session.ID(id)).
		WithOwner().WithArray().WithResourceGroup().WithNetworks(present).WithImage(func(q *ent.ImageQuery) { q.WithRegistry() }).
		WithKernels(func(q *ent.KernelQuery) {
			q.WithAgent().WithAllocations(func(q *ent.AllocationQuery) { q.WithDevice() })
		}).
		WithMounts(func(q *ent.SessionMountQuery) { q.WithVfolder(atVolume) }).Only(ctx)
}

// atVolume loads folders with their volume and place.
func atVolume(q *ent.VfolderQuery) {
	q.WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() })
}

// present are the networks that are not given back.
func present(q *ent.SessionNetworkQuery) {
	q.Where(func(s *sql.Selector) { s.Where(sql.IsNull(s.C(sessionnetwork.FieldFreedAt))) })
}

// take makes at most one move and reports whether it did.
func (s step) take(ctx context.Context) (moved bool, again time.Duration, err error) {
	if d := s.sess.DeadlineAt; d != nil && clock.Now().After(*d) {
		return true, 0, s.expire(ctx)
	}
	if moved, err := s.displace(ctx); moved || err != nil {
		return true, 0, err
	}
	switch s.sess.Status {
	case lifecycle.Scheduled:
		return s.prepare(ctx)
	case lifecycle.Preparing:
		return s.awaitImage(ctx)
	case lifecycle.Prepared:
		if err := s.refreshMounts(ctx); err != nil {
			return false, 0, err
		}
		return true, 0, s.move(ctx, creating)
	case lifecycle.Creating:
		return s.create(ctx)
	case lifecycle.Running:
		return s.awaitEnd(ctx)
	case lifecycle.Terminating:
		return s.terminate(ctx)
	case lifecycle.Terminated, lifecycle.Cancelled, lifecycle.Error:
		return false, 0, s.freed(ctx, s.epoch, s.sess)
	}
	return false, 0, nil
}

// move applies m; the default result is success.
func (s step) move(ctx context.Context, m move.Move) error {
	if m.Result == "" {
		m.Result = sessionevent.ResultSuccess
	}
	if m.To == lifecycle.Pending || m.To.Final() {
		s.abandon(ctx)
	}
	if err := s.commit(ctx, s.epoch, s.sess, m); err != nil {
		return err // it may have been stored nevertheless
	}
	s.changedBy(ctx, s.sess.ID, byMoves)
	s.sess.Version++
	s.seen.Put(s.sess.ID, s.sess.Version)
	now := clock.Now()
	s.sess.Status, s.sess.StatusMessage, s.sess.DeadlineAt = m.To, m.Message, nil
	if d := lifecycle.Deadline(m.To); d > 0 {
		d := now.Add(d)
		s.sess.DeadlineAt = &d
	}
	if m.To == lifecycle.Running {
		s.sess.StartedAt = &now
	}
	if m.Reason != nil {
		s.sess.TerminationReason = m.Reason
	}
	if m.To == lifecycle.Terminating {
		s.sess.RetryAt = m.RetryAt
	}
	if m.To == lifecycle.Pending {
		for _, k := range s.sess.Edges.Kernels {
			k.AgentID, k.Edges.Agent, k.Edges.Allocations = nil, nil, nil
		}
	}
	return nil
}
