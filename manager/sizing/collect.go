package sizing

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/slot"
	"github.com/berthhq/berth/manager/store"

	history "github.com/berthhq/berth/manager/series"
)

const (
	every = time.Minute
	// settled is how long after its end a session is summarized: managers store the last samples within a minute.
	settled = 2 * time.Minute
	// back is how far a new leader looks for ended sessions: as long as the finest grain is kept by default.
	back = 24 * time.Hour
	// renew is how old the summary of a running session can be.
	renew = 15 * time.Minute
	// batch limits the sessions of one round, because the managers have other work.
	batch  = 200
	points = 2000
)

// History reads measurements.
type History interface {
	Read(ctx context.Context, q history.Query) (series.Lines, time.Duration, error)
}

// Service summarizes the use of sessions.
type Service struct {
	client  *ent.Client
	history History
	log     *slog.Logger
}

// New returns a Service.
func New(client *ent.Client, h History, log *slog.Logger) *Service {
	return &Service{client: client, history: h, log: log}
}

// Lead summarizes sessions until ctx ends. Only the leader runs it. A summary is replaced as a whole, so a leader that is killed
// half-way leaves the sessions that are due for the next one.
func (s *Service) Lead(ctx context.Context) {
	tick := clock.NewTicker("use of sessions", every)
	defer tick.Stop()
	for {
		if err := s.Collect(ctx, clock.Now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "summarize the use of sessions", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// due is a session whose summary is missing or old.
type due struct {
	id, image uuid.UUID
	from, to  time.Time
	slots     resource.Slots
	final     bool
	kernels   map[uuid.UUID]uuid.UUID // with their agents
}

// Collect summarizes the sessions that are due.
func (s *Service) Collect(ctx context.Context, now time.Time) error {
	ctx = store.On(viewer.SystemContext(ctx), store.Leader)
	list, err := s.due(ctx, now)
	if err != nil {
		return err
	}
	for _, d := range list {
		if err := s.one(ctx, now, d); err != nil {
			return err
		}
	}
	return nil
}

// dueSessions finds sessions that ended and have no final summary, and running ones with an old summary. Ids of entries of the history
// begin with their time.
const dueSessions = `WITH ended AS (
  SELECT DISTINCT e.session_id AS id FROM session_events e WHERE e.id > $1 AND e.at < $2 AND e.to_status IN ('terminated', 'error')
    AND NOT EXISTS (SELECT FROM session_uses u WHERE u.session_id = e.session_id AND u.final)),
running AS (
  SELECT s.id FROM sessions s WHERE s.terminated_at IS NULL AND NOT s.replaced AND s.status = 'running' AND s.started_at < $3
    AND NOT EXISTS (SELECT FROM session_uses u WHERE u.session_id = s.id AND u.updated_at > $3))
SELECT s.id, s.image_id, s.started_at, COALESCE(s.terminated_at, $4), s.slots, s.terminated_at IS NOT NULL,
  (SELECT json_object_agg(k.id, k.agent_id) FROM kernels k WHERE k.session_id = s.id AND k.agent_id IS NOT NULL)
FROM sessions s WHERE s.started_at IS NOT NULL AND s.id IN (SELECT id FROM ended UNION ALL SELECT id FROM running) ORDER BY s.terminated_at LIMIT $5`

func (s *Service) due(ctx context.Context, now time.Time) (out []due, err error) {
	rows, err := s.client.QueryContext(ctx, dueSessions, store.IDBefore(now.Add(-back)), now.Add(-settled), now.Add(-renew), now, batch)
	if err != nil {
		return nil, fmt.Errorf("find sessions to summarize: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var d due
		var slots, kernels []byte
		if err := rows.Scan(&d.id, &d.image, &d.from, &d.to, &slots, &d.final, &kernels); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(slots, &d.slots); err != nil {
			return nil, fmt.Errorf("read the slots of session %s: %w", d.id, err)
		}
		if len(kernels) > 0 {
			if err := json.Unmarshal(kernels, &d.kernels); err != nil {
				return nil, fmt.Errorf("read the kernels of session %s: %w", d.id, err)
			}
		}
		out = append(out, d)
	}
	return out, rows.Err()
}

// one summarizes a session.
func (s *Service) one(ctx context.Context, now time.Time, d due) error {
	lines, step := series.Lines{}, time.Second
	if len(d.kernels) > 0 && d.from.Before(d.to) {
		var err error
		if lines, step, err = s.history.Read(ctx, history.Query{Subjects: d.kernels, From: d.from.UTC(), To: d.to.UTC(), Points: points}); err != nil {
			return fmt.Errorf("read the measurements of session %s: %w", d.id, err)
		}
	}
	step = max(step, sampled) // samples are farther apart than the finest step
	for _, of := range lines {
		for _, l := range of {
			l.Coarsen(step)
		}
	}
	run := Run{Slots: d.slots, Kernels: len(d.kernels), Seconds: d.to.Sub(d.from).Seconds()}
	img, err := s.client.Image.Get(ctx, d.image)
	switch {
	case err == nil:
		run.Minimum = slot.Minimum(img)
	case !ent.IsNotFound(err):
		return err
	}
	return s.write(ctx, now, d, Summarize(run, lines, step))
}

// sampled is the longest usual distance of two samples: agents measure every 5 s, and some later.
const sampled = 10 * time.Second

// write replaces the summary of a session.
func (s *Service) write(ctx context.Context, now time.Time, d due, uses []Use) error {
	type row struct {
		Metric, Slot, Unit string
		Asked              float64
		Mean, P95, Peak    *float64
		Quality            Quality
		Seconds            int64
		Suggested          *int64
	}
	list := []row{}
	for _, u := range uses {
		r := row{Metric: u.Metric, Slot: u.Slot, Unit: u.Unit, Asked: u.Asked, Quality: u.Quality, Seconds: u.Seconds, Suggested: u.Suggested}
		if u.Quality != Unknown {
			r.Mean, r.P95, r.Peak = &u.Mean, &u.P95, &u.Peak
		}
		list = append(list, r)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("store the use of session %s: %w", d.id, err)
	}
	_, err = s.client.ExecContext(ctx, `INSERT INTO session_uses (domain_id, project_id, owner_id, session_id, metric, slot, unit, asked, mean, p95, peak, quality, seconds, suggested, final, updated_at)
SELECT s.domain_id, s.project_id, s.owner_id, s.id, n."Metric", n."Slot", n."Unit", n."Asked", n."Mean", n."P95", n."Peak", n."Quality", n."Seconds", n."Suggested", $3, $4
FROM sessions s, json_to_recordset($2::json) AS n("Metric" text, "Slot" text, "Unit" text, "Asked" double precision, "Mean" double precision, "P95" double precision,
  "Peak" double precision, "Quality" text, "Seconds" bigint, "Suggested" bigint) WHERE s.id = $1
ON CONFLICT (session_id, metric) DO UPDATE SET slot = excluded.slot, unit = excluded.unit, asked = excluded.asked, mean = excluded.mean, p95 = excluded.p95,
  peak = excluded.peak, quality = excluded.quality, seconds = excluded.seconds, suggested = excluded.suggested, final = excluded.final, updated_at = excluded.updated_at`,
		d.id, string(text), d.final, now)
	if err != nil {
		return fmt.Errorf("store the use of session %s: %w", d.id, err)
	}
	return nil
}
