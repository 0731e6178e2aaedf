package idle

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

const (
	// noteEvery is how often a manager stores the times of use: a quarter of the shortest timeout,
	// so that two writes can fail.
	noteEvery = 15 * time.Second
	// noteAgain limits the writes for a session with many short connections.
	noteAgain = 5 * time.Second
)

// useOf is a session and the app through which it is used, if any.
type useOf struct {
	session uuid.UUID
	app     string
}

// Connection is one connection to a session: a terminal, a command, a port, an app.
type Connection struct {
	s       *Service
	session useOf
	stays   bool
	moved   atomic.Bool
}

// counts has the open connections of this manager. It stores the times of use in the database,
// because the leader, which reads them, may be another manager.
type counts struct {
	mu   sync.Mutex
	open map[*Connection]struct{}
	left map[useOf]time.Time // use that is not stored yet
	at   map[useOf]time.Time // when use was last stored
}

// Enter records the start of a connection to a session. A terminal keeps the session in use
// while it is open, a port only when data moves. Call Leave at the end.
func (s *Service) Enter(ctx context.Context, session uuid.UUID, stays bool) *Connection {
	return s.enter(ctx, useOf{session: session}, stays)
}

// EnterApp records the start of a connection to an app of a session, by its name or port. It counts
// when data moves.
func (s *Service) EnterApp(ctx context.Context, session uuid.UUID, app string) *Connection {
	return s.enter(ctx, useOf{session, app}, false)
}

func (s *Service) enter(ctx context.Context, session useOf, stays bool) *Connection {
	v := &Connection{s: s, session: session, stays: stays}
	now := s.Now()
	s.visits.mu.Lock()
	s.visits.open[v] = struct{}{}
	s.visits.left[session] = now
	recent := now.Sub(s.visits.at[session]) < noteAgain
	s.visits.mu.Unlock()
	if !recent {
		s.Note(ctx)
	}
	return v
}

// Moved records that data has moved.
func (v *Connection) Moved() {
	if !v.moved.Load() { // avoids a write to a shared cache line for every frame
		v.moved.Store(true)
	}
}

// Leave ends the connection.
func (v *Connection) Leave() {
	w := &v.s.visits
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, v)
	if v.stays || v.moved.Load() {
		w.left[v.session] = v.s.Now()
	}
}

// Watch stores the times of use until ctx ends. Every manager runs it.
func (s *Service) Watch(ctx context.Context) { andAtLast(ctx, noteEvery, s.Note) }

// andAtLast calls f at intervals until ctx ends, and then once more.
func andAtLast(ctx context.Context, every time.Duration, f func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			f(last)
			return
		case <-tick.C:
			f(ctx)
		}
	}
}

// Note stores which sessions were used since the last call. If the write fails, the next call
// repeats it.
func (s *Service) Note(ctx context.Context) {
	now, w := s.Now(), &s.visits
	w.mu.Lock()
	for v := range w.open {
		if v.stays || v.moved.Swap(false) {
			w.left[v.session] = now
		}
	}
	used := w.left
	w.left = map[useOf]time.Time{}
	for session := range used {
		w.at[session] = now
	}
	for session, at := range w.at {
		if now.Sub(at) > noteAgain {
			delete(w.at, session)
		}
	}
	w.mu.Unlock()
	if len(used) == 0 {
		return
	}
	if err := s.note(ctx, used); err != nil {
		s.Logger.Warn("record which sessions are used", "sessions", len(used), "error", err)
		w.mu.Lock()
		defer w.mu.Unlock()
		for session, at := range used {
			w.left[session] = later(w.left[session], at)
			delete(w.at, session)
		}
	}
}

func (s *Service) note(ctx context.Context, used map[useOf]time.Time) error {
	var ids, sessions, apps []string
	var at []time.Time
	for of, t := range used {
		ids, sessions, apps, at = append(ids, id.New(id.Other).String()), append(sessions, of.session.String()), append(apps, of.app), append(at, t)
	}
	_, err := s.Client.ExecContext(ctx, `INSERT INTO idle_activities AS a (id, session_id, app, at)
SELECT w.id, w.session, w.app, w.at FROM unnest($1::text[]::uuid[], $2::text[]::uuid[], $3::text[], $4::timestamptz[]) AS w(id, session, app, at)
  JOIN sessions s ON s.id = w.session AND s.terminated_at IS NULL ORDER BY w.session, w.app
ON CONFLICT (session_id, app) DO UPDATE SET at = greatest(a.at, excluded.at)`, ids, sessions, apps, at)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
