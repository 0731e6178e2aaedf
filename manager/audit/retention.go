package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/retention"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

const (
	maxDays      = 3650
	sweepEvery   = time.Hour
	sweepBatch   = 5000
	partsBatch   = 200   // for categories whose rows have parts, such as the allocations of sessions
	batchTimeout = "30s" // a batch uses an index; a longer time indicates a fault
)

// kept is a category of rows with limited retention.
type kept struct {
	category string
	days     int // default
	table    string
	over     string   // condition of rows that are older than $1
	parts    []string // tables of rows that are deleted with a session, by session_id
	// A category without a table has a sweeper, or the logs on the agents, which package
	// session removes, see LogsBefore.
}

// The categories that other packages use.
const (
	Trash       = "trash" // folders; they need a sweeper
	sessions    = "sessions"
	sessionLogs = "session_logs"
)

var categories = []kept{
	{category: "audit", days: 365, table: "audit_entries", over: "at < $1"},
	{category: "logins", days: 365, table: "login_attempts", over: "at < $1"},
	{category: "sessions_history", days: 365, table: "session_events",
		over: "at < $1 AND EXISTS (SELECT FROM sessions s WHERE s.id = session_id AND s.terminated_at IS NOT NULL)"},
	{category: "tasks", days: 90, table: "tasks", over: "ended_at < $1"},
	{category: "notices", days: 90, table: "notices", over: "created_at < $1"},
	{category: "notice_deliveries", days: 30, table: "notice_deliveries", over: "created_at < $1 AND status <> 'waiting'"},
	{category: "login_sessions", days: 30, table: "login_sessions", over: "(expires_at < $1 OR revoked_at < $1)"},
	{category: Trash, days: 30},
	// Kept forever, because usage is summed from allocations (ADR 18). The time of creation is
	// before the end, and has an index.
	{category: sessions, days: 0, table: "sessions", over: "created_at < $1 AND terminated_at < $1",
		parts: []string{"allocations", "session_events", "session_mounts", "session_starts", "session_uses", "kernels"}},
	{category: sessionLogs, days: 7},
	{category: "prompt_records", days: 7, table: "prompt_records", over: "created_at < $1"},
	// The history of measurements, by grain (ADR 52).
	{category: "series_samples", days: 1, table: "series_chunks", over: `"grain" = 0 AND start < $1`},
	{category: "series_minutes", days: 14, table: "series_chunks", over: `"grain" = 1 AND start < $1`},
	{category: "series_hours", days: 180, table: "series_chunks", over: `"grain" = 2 AND start < $1`},
	{category: "series_days", days: 1095, table: "series_chunks", over: `"grain" = 3 AND start < $1`},
	// The past capacity of machines. A span that has not ended stays.
	{category: "capacity", days: 1095, table: "capacity_spans", over: "ended_at < $1"},
}

// SetRetentionInput sets the days that a category is kept; 0 means forever.
type SetRetentionInput struct {
	Category string
	Days     int
}

// RetentionPayload is the changed category.
type RetentionPayload struct{ Retention *ent.Retention }

// Ensure adds rows with defaults for categories that have none.
func (s *Service) Ensure(ctx context.Context) error {
	var rows []*ent.RetentionCreate
	for _, k := range categories {
		rows = append(rows, s.client.Retention.Create().SetCategory(k.category).SetDays(k.days))
	}
	err := s.client.Retention.CreateBulk(rows...).OnConflictColumns(retention.FieldCategory).DoNothing().
		Exec(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("add retention of rows: %w", err)
	}
	return nil
}

// Retentions returns the retention of all categories, in their order.
func (s *Service) Retentions(ctx context.Context) ([]*ent.Retention, error) {
	all, err := s.client.Retention.Query().All(ctx)
	slices.SortFunc(all, func(a, b *ent.Retention) int { return place(a.Category) - place(b.Category) })
	return all, err
}

func place(category string) int {
	return slices.IndexFunc(categories, func(k kept) bool { return k.category == category })
}

// SetRetention changes how long a category is kept. Older rows are deleted within the hour.
func (s *Service) SetRetention(ctx context.Context, in SetRetentionInput) (*RetentionPayload, error) {
	if _, err := permit.Check(ctx, access.Update, access.System, access.Object{}); err != nil {
		return nil, err
	}
	if place(in.Category) < 0 {
		return nil, problem.Invalid("category", "is not a category of rows")
	}
	if in.Days < 0 || in.Days > maxDays {
		return nil, problem.Invalid("days", "must be from 1 to %d, or 0 to keep rows forever", maxDays).WithLimit(fmt.Sprint(maxDays))
	}
	system := viewer.SystemContext(ctx)
	if err := s.Ensure(ctx); err != nil {
		return nil, err
	}
	if err := s.client.Retention.Update().Where(retention.Category(in.Category)).SetDays(in.Days).Exec(system); err != nil {
		return nil, err
	}
	row, err := s.client.Retention.Query().Where(retention.Category(in.Category)).Only(system)
	return &RetentionPayload{Retention: row}, err
}

// Lead deletes rows that are too old, every hour, until ctx ends. Only the leader runs it.
func (s *Service) Lead(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		s.Sweep(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Sweep deletes rows that are too old at a given time. A failed category does not prevent the
// others.
func (s *Service) Sweep(ctx context.Context, at time.Time) {
	ctx = viewer.SystemContext(ctx)
	rows, err := s.client.Retention.Query().Where(retention.DaysGT(0)).All(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "read retention of rows", "error", err)
	}
	for _, row := range rows {
		i := place(row.Category)
		if i < 0 {
			continue
		}
		if row.Category == sessionLogs {
			continue
		}
		if err := s.sweep(ctx, row, categories[i], at); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "remove old rows", "category", row.Category, "error", err)
		}
	}
}

func (s *Service) sweep(ctx context.Context, row *ent.Retention, k kept, at time.Time) error {
	before := at.AddDate(0, 0, -row.Days)
	for {
		n, err := s.batch(ctx, k, before)
		if err != nil {
			return err
		}
		if err := s.client.Retention.UpdateOne(row).AddRemoved(n).SetSweptAt(at).Exec(ctx); err != nil {
			return err
		}
		if n < k.limit() {
			return nil
		}
	}
}

// LogsBefore returns the time before which the logs of ended sessions are deleted; zero means
// never.
func (s *Service) LogsBefore(ctx context.Context) (time.Time, error) {
	rows, err := s.client.Retention.Query().
		Where(retention.DaysGT(0), retention.CategoryIn(sessions, sessionLogs)).All(viewer.SystemContext(ctx))
	if err != nil {
		return time.Time{}, fmt.Errorf("read retention of logs: %w", err)
	}
	var before time.Time
	for _, row := range rows {
		if at := clock.Now().AddDate(0, 0, -row.Days); at.After(before) {
			before = at
		}
	}
	return before, nil
}

// LogsRemoved adds to the number of deleted logs of ended sessions.
func (s *Service) LogsRemoved(ctx context.Context, n int) error {
	return s.client.Retention.Update().Where(retention.Category(sessionLogs)).
		AddRemoved(int64(n)).SetSweptAt(clock.Now()).Exec(viewer.SystemContext(ctx))
}

// batch deletes a number of rows that is small enough not to block other transactions.
func (s *Service) batch(ctx context.Context, k kept, before time.Time) (int64, error) {
	if k.table == "" {
		sweep := s.sweepers[k.category]
		if sweep == nil {
			return 0, nil
		}
		n, err := sweep(ctx, before)
		return int64(n), err
	}
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // no effect after a commit
	if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = '"+batchTimeout+"'"); err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, k.statement(), before)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, err
	}
	return n, tx.Commit()
}

// limit returns the number of rows of a batch.
func (k kept) limit() int64 {
	if len(k.parts) > 0 {
		return partsBatch
	}
	return sweepBatch
}

// statement deletes a batch with all dependent rows. Foreign keys are checked at the end of
// the statement, so the order does not matter.
func (k kept) statement() string {
	var b strings.Builder
	fmt.Fprintf(&b, "WITH over AS (SELECT id FROM %s WHERE %s LIMIT %d)", k.table, k.over, k.limit())
	for i, part := range k.parts {
		fmt.Fprintf(&b, ", part%d AS (DELETE FROM %s WHERE session_id IN (SELECT id FROM over))", i, part)
	}
	fmt.Fprintf(&b, " DELETE FROM %s WHERE id IN (SELECT id FROM over)", k.table)
	return b.String()
}
