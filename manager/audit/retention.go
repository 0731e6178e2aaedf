package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/retention"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

const (
	maxDays      = 3650
	sweepEvery   = time.Hour
	sweepBatch   = 5000
	batchTimeout = "30s" // a batch reads by an index; longer means that something is wrong
)

// kept is a category of rows that are not kept for ever.
type kept struct {
	category string
	days     int // from the first start
	table    string
	over     string // is true for rows that are older than $1
	// of folders in the trash neither says anything: Service.Trash removes them
}

var categories = []kept{
	{"audit", 365, "audit_entries", "at < $1"},
	{"logins", 365, "login_attempts", "at < $1"},
	{"sessions_history", 365, "session_events",
		"at < $1 AND EXISTS (SELECT FROM sessions s WHERE s.id = session_id AND s.terminated_at IS NOT NULL)"},
	{"tasks", 90, "tasks", "ended_at < $1"},
	{"login_sessions", 30, "login_sessions", "(expires_at < $1 OR revoked_at < $1)"},
	{"trash", 30, "", ""},
}

// SetRetentionInput says for how many days a category is kept; 0 is for ever.
type SetRetentionInput struct {
	Category string
	Days     int
}

// RetentionPayload answers a change of one.
type RetentionPayload struct{ Retention *ent.Retention }

// Ensure adds the categories that have no row yet, with their defaults.
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

// Retentions lists how long rows are kept, in the order of the categories.
func (s *Service) Retentions(ctx context.Context) ([]*ent.Retention, error) {
	all, err := s.client.Retention.Query().All(ctx)
	slices.SortFunc(all, func(a, b *ent.Retention) int { return place(a.Category) - place(b.Category) })
	return all, err
}

func place(category string) int {
	return slices.IndexFunc(categories, func(k kept) bool { return k.category == category })
}

// SetRetention changes how long a category is kept. The rows that are then too
// old are removed within the hour.
func (s *Service) SetRetention(ctx context.Context, in SetRetentionInput) (*RetentionPayload, error) {
	if _, err := permit.Check(ctx, access.Update, access.System, access.Object{}); err != nil {
		return nil, err
	}
	if place(in.Category) < 0 {
		return nil, problem.Invalid("category", "there is no such category of rows")
	}
	if in.Days < 0 || in.Days > maxDays {
		return nil, problem.Invalid("days", "must be from 1 to %d, or 0 for ever", maxDays).WithLimit(fmt.Sprint(maxDays))
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

// Lead removes what is too old, every hour, until ctx ends. One manager runs it.
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

// Sweep removes what is too old at a time. A category that fails does not keep
// the others from their turn.
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
		if n < sweepBatch {
			return nil
		}
	}
}

// batch removes some rows, few enough that nobody waits for it.
func (s *Service) batch(ctx context.Context, k kept, before time.Time) (int64, error) {
	if k.table == "" {
		if s.Trash == nil {
			return 0, nil
		}
		n, err := s.Trash(ctx, before)
		return int64(n), err
	}
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = '"+batchTimeout+"'"); err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, fmt.Sprintf(
		"DELETE FROM %[1]s WHERE id IN (SELECT id FROM %[1]s WHERE %[2]s LIMIT %[3]d)", k.table, k.over, sweepBatch), before)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, err
	}
	return n, tx.Commit()
}
