package notice

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/noticecursor"
	"github.com/berthhq/berth/manager/store"
)

// The tables of events have ids that sort by the time at which a manager made them. A transaction can commit long after that, so the
// stored position is never later than the begin of the oldest open transaction that writes, less the difference of clocks. Events
// after it are read again, and their marks say which of them have notices. Between those reads, only events after the newest known
// one are read.

const (
	cursorName = "events"
	pageSize   = 2000
	// marksFor is how long after the position marks are kept: events before the position are not read again.
	marksFor = 10 * time.Minute
	// budgetsFor is the same for budgets, whose period can be a year.
	budgetsFor = 400 * 24 * time.Hour
)

// collector reads new events.
type collector struct {
	*Service
	newest [len(sources)]uuid.UUID // the last event that was read, of each source
	full   time.Time               // of the last read from the position
}

// source is a table of events.
type source struct {
	name  string
	query string // $1: after this id, $2: most rows
	scan  func(*sql.Rows) (uuid.UUID, []Event, error)
}

var sources = [...]source{
	{"session events", sessionEvents, scanSession},
	{"deployment events", deploymentEvents, scanDeployment},
	{"shares of folders", shareEvents, scanShare},
}

// Collect posts notices of events since the last call.
func (c *collector) Collect(ctx context.Context) error {
	now := c.Now()
	full := now.Sub(c.full) >= c.reread || c.full.After(now)
	if !full {
		return c.pages(ctx, time.Time{})
	}
	position, err := c.position(ctx, now)
	if err != nil {
		return err
	}
	next, err := c.settled(ctx, now)
	if err != nil {
		return err
	}
	if err := c.pages(ctx, position); err != nil {
		return err
	}
	if err := c.builds(ctx, position); err != nil {
		return err
	}
	if next.After(position) {
		if err := c.Client.NoticeCursor.Update().Where(noticecursor.Source(cursorName)).SetPosition(next).Exec(ctx); err != nil {
			return fmt.Errorf("store the position: %w", err)
		}
		position = next
	}
	c.full = now
	if _, err := c.Client.ExecContext(ctx, "DELETE FROM notice_marks WHERE at < $1 AND (NOT lasting OR key LIKE 'budget %' AND at < $2)",
		position.Add(-marksFor), position.Add(-budgetsFor)); err != nil {
		return fmt.Errorf("delete old marks: %w", err)
	}
	return nil
}

// position returns the time from which events are read again. The first call of all makes it the current time: earlier events make
// no notices.
func (c *collector) position(ctx context.Context, now time.Time) (time.Time, error) {
	err := c.Client.NoticeCursor.Create().SetSource(cursorName).SetPosition(now.Add(-c.lateness)).OnConflictColumns(noticecursor.FieldSource).DoNothing().Exec(ctx)
	if err != nil && !ent.IsNotFound(err) && err != sql.ErrNoRows { //nolint:errorlint // ent returns it as it is
		return time.Time{}, fmt.Errorf("store the position: %w", err)
	}
	row, err := c.Client.NoticeCursor.Query().Where(noticecursor.Source(cursorName)).Only(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the position: %w", err)
	}
	return row.Position, nil
}

// settled returns a time before which every event is visible now or never.
func (c *collector) settled(ctx context.Context, now time.Time) (time.Time, error) {
	rows, err := c.Client.QueryContext(ctx, `SELECT coalesce(extract(epoch FROM now() - min(xact_start)), 0) FROM pg_stat_activity
WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()`)
	if err != nil {
		return time.Time{}, fmt.Errorf("read open transactions: %w", err)
	}
	defer rows.Close()
	var seconds float64
	for rows.Next() {
		if err := rows.Scan(&seconds); err != nil {
			return time.Time{}, fmt.Errorf("read open transactions: %w", err)
		}
	}
	return now.Add(-time.Duration(seconds*float64(time.Second)) - c.lateness), rows.Err()
}

// pages reads every source, from a position or from its newest known event.
func (c *collector) pages(ctx context.Context, from time.Time) error {
	for i, src := range sources {
		after := c.newest[i]
		if !from.IsZero() {
			after = firstID(from)
		}
		for {
			n, last, err := c.page(ctx, src, after)
			if err != nil {
				return err
			}
			if n > 0 {
				after = last
			}
			if string(c.newest[i][:]) < string(after[:]) {
				c.newest[i] = after
			}
			if n < pageSize {
				break
			}
		}
	}
	return nil
}

// page posts the notices of one page of events, in one transaction.
func (c *collector) page(ctx context.Context, src source, after uuid.UUID) (n int, last uuid.UUID, err error) {
	var done *posting
	err = store.InTx(ctx, c.Client, func(tx *ent.Tx) error {
		rows, err := tx.QueryContext(ctx, src.query, after, pageSize)
		if err != nil {
			return fmt.Errorf("read %s: %w", src.name, err)
		}
		defer rows.Close()
		var events []Event
		for rows.Next() {
			id, list, err := src.scan(rows)
			if err != nil {
				return fmt.Errorf("read %s: %w", src.name, err)
			}
			n, last, events = n+1, id, append(events, list...)
		}
		if err := rows.Err(); err != nil || len(events) == 0 {
			return err
		}
		rows.Close()
		done, err = c.post(ctx, tx, events)
		return err
	})
	if err == nil {
		c.posted(ctx, done)
	}
	return n, last, err
}

// firstID returns the smallest id that a manager can have made at a time.
func firstID(at time.Time) uuid.UUID {
	var u uuid.UUID
	ms := uint64(max(0, at.UnixMilli()))
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i)))
	}
	return u
}

// builds posts the notices of builds of images that ended. Builds are few, so they are read by the time of their end.
func (c *collector) builds(ctx context.Context, from time.Time) error {
	rows, err := c.Client.QueryContext(ctx, `SELECT id, owner_id, name, status, message FROM image_builds
WHERE ended_at >= $1 AND status IN ('succeeded', 'failed') ORDER BY ended_at LIMIT 10000`, from)
	if err != nil {
		return fmt.Errorf("read builds of images: %w", err)
	}
	defer rows.Close()
	var events []Event
	for rows.Next() {
		e, err := scanBuild(rows)
		if err != nil {
			return fmt.Errorf("read builds of images: %w", err)
		}
		events = append(events, e)
	}
	if err := rows.Err(); err != nil || len(events) == 0 {
		return err
	}
	rows.Close()
	return c.Post(ctx, events...)
}
