package chatting

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/gateway/serving"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/chat"
	"github.com/berthhq/berth/manager/chat/live"
)

// Models asks deployments.
type Models interface {
	Ask(ctx context.Context, in serving.Ask, w http.ResponseWriter) (inference.Record, error)
}

// Users reads what users can do at this time; none for a user who is not active.
type Users interface {
	Rights(ctx context.Context, users []uuid.UUID) (map[uuid.UUID]*viewer.Viewer, error)
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus
	Live   live.Store
	Keys   *seal.Ring
	Models Models
	Users  Users
	// Egress are the hosts and networks that endpoints can have in addition to the Internet.
	Egress *egress.Policy
	// Roots are the certificates that endpoints can have; nil: those of the machine.
	Roots    *x509.CertPool
	Gateway  uuid.UUID
	Registry prometheus.Registerer
	Logger   *slog.Logger
}

const (
	// maxRunning limits the answers that one gateway runs at a time.
	maxRunning = 256
	// lookEvery is the time between two looks for answers that no event announced.
	lookEvery = 2 * time.Second
	// reportEvery is the time between two reports that this gateway runs.
	reportEvery = time.Second
	// storeTime limits one access to a store.
	storeTime = 5 * time.Second
)

// Reasons for the end of a request.
var (
	errStopped = errors.New("stopped by a person")
	errLeaving = errors.New("the gateway that received the answer has ended")
	errDeleted = errors.New("the chat was deleted")
)

// Service runs answers. New creates one.
type Service struct {
	Config
	outside *http.Client
	orphans chat.Orphans
	meter   *meter
	runs    sync.WaitGroup

	mu      sync.Mutex
	running map[uuid.UUID]*run
}

// New returns a Service. Run makes it take answers.
func New(cfg Config) *Service {
	return &Service{Config: cfg, outside: newOutside(cfg), meter: newMeter(cfg.Registry), running: map[uuid.UUID]*run{}}
}

// Run takes answers that wait until ctx ends, and then ends those that run with the text so far.
func (s *Service) Run(ctx context.Context) error {
	ctx = viewer.SystemContext(ctx)
	events := s.Bus.Subscribe(ctx, event.Chat)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	s.report(ctx)
	var reports sync.WaitGroup
	reports.Go(func() { s.reportUntil(ctx) })
	s.look(ctx)
	for {
		select {
		case <-ctx.Done():
			reports.Wait()
			s.leave(ctx)
			return nil
		case e, ok := <-events:
			switch {
			case !ok: // ctx has ended
				events = nil
			case e.Topic == event.Lagged:
				s.look(ctx)
			case e.By == chat.ByAsking:
				s.claim(ctx)
			case e.By == chat.ByStopping:
				s.stop(ctx, e.ID)
			}
		case <-look.C:
			s.look(ctx)
		}
	}
}

func (s *Service) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, what, "error", err)
	}
}

// reportUntil reports until ctx ends. The other loop can wait for the database, and the answers run meanwhile.
func (s *Service) reportUntil(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.report(ctx)
		}
	}
}

func (s *Service) report(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	s.warn(ctx, "report that the gateway runs answers", s.Live.Report(ctx, s.Gateway))
}

// leave ends all answers, and waits until they are stored.
func (s *Service) leave(ctx context.Context) {
	s.mu.Lock()
	for _, r := range s.running {
		r.cancel(errLeaving)
	}
	s.mu.Unlock()
	s.runs.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	s.warn(ctx, "report that the gateway ends", s.Live.Leave(ctx, s.Gateway))
}

// look takes answers, and stops or ends those for which an event was lost.
func (s *Service) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	s.claim(ctx)
	s.stop(ctx, uuid.Nil)
	s.warn(ctx, "end the answers of gateways that are gone", s.orphans.End(ctx, s.Client, s.Live, s.Bus))
}

// claimed takes answers that wait, the oldest first. Of a replay, only its four oldest answers run.
const claimed = `
UPDATE chat_answers SET gateway = $1 WHERE id IN (
	SELECT a.id FROM chat_answers a
	WHERE a.ended_at IS NULL AND a.gateway IS NULL AND (a.replay_id IS NULL OR
		(SELECT count(*) FROM chat_answers b WHERE b.replay_id = a.replay_id AND b.ended_at IS NULL AND b.id < a.id) < 4)
	ORDER BY a.created_at LIMIT $2 FOR UPDATE SKIP LOCKED
) RETURNING id`

// claim takes answers that wait, and starts them.
func (s *Service) claim(ctx context.Context) {
	s.mu.Lock()
	room := maxRunning - len(s.running)
	s.mu.Unlock()
	if room <= 0 || ctx.Err() != nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	ids, err := s.take(limited, room)
	if err != nil || len(ids) == 0 {
		s.warn(ctx, "take answers", err)
		return
	}
	rows, err := s.Client.ChatAnswer.Query().Where(chatanswer.IDIn(ids...), chatanswer.EndedAtIsNil()).All(limited)
	if err != nil { // the next look interrupts them
		s.warn(ctx, "read answers", err)
		return
	}
	for _, a := range rows {
		s.start(ctx, a)
	}
}

func (s *Service) take(ctx context.Context, most int) (ids []uuid.UUID, err error) {
	rows, err := s.Client.QueryContext(ctx, claimed, s.Gateway, most)
	if err != nil {
		return nil, fmt.Errorf("take answers: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("take answers: %w", err)
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// stop stops the answers of a chat that must stop, or of all for no ID. Those without a row were deleted, and those with a row that
// this gateway does not run could not be stored or read.
func (s *Service) stop(ctx context.Context, of uuid.UUID) {
	mine := s.list(of)
	if len(mine) == 0 && of != uuid.Nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	q := s.Client.ChatAnswer.Query().Where(chatanswer.Gateway(s.Gateway), chatanswer.EndedAtIsNil())
	if of != uuid.Nil {
		q.Where(chatanswer.ChatID(of))
	}
	rows, err := q.All(limited)
	if err != nil {
		s.warn(ctx, "read answers", err)
		return
	}
	open := map[uuid.UUID]*ent.ChatAnswer{}
	var lost []*ent.ChatAnswer
	for _, a := range rows {
		if open[a.ID] = a; mine[a.ID] == nil {
			lost = append(lost, a)
		}
	}
	for id, r := range mine {
		switch a := open[id]; {
		case a == nil:
			r.cancel(errDeleted) // or stored by another gateway
		case a.Stopping:
			r.cancel(errStopped)
		}
	}
	s.warn(ctx, "end answers", chat.Interrupt(limited, s.Client, s.Live, s.Bus, lost))
}

// list returns the answers of a chat that run, or all for no ID.
func (s *Service) list(of uuid.UUID) map[uuid.UUID]*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[uuid.UUID]*run{}
	for id, r := range s.running {
		if of == uuid.Nil || r.answer.ChatID == of {
			out[id] = r
		}
	}
	return out
}
