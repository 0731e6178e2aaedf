// Package rekey changes the key that seals the secrets in the database. The
// server's command line imports it.
package rekey

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/seal"
)

const (
	batch = 200
	// A request that sealed before the key changed has written its row after so
	// long: between the two is one statement.
	straggle = 3 * time.Second
	// A run that was cut gives its lock back a little late.
	lockWait, lockLook = 3 * time.Second, 50 * time.Millisecond
	// lock is the advisory lock of who changes keys; the number is "seal".
	lock = 0x7365616c
)

// Rekeyer changes keys. Every field must be set but Straggle.
type Rekeyer struct {
	DB  *sql.DB
	Dir string // of the key ring
	// Say is told what was done, a line at a time.
	Say func(format string, args ...any)
	// Straggle is how long to wait for requests that were under way; zero: 3 s.
	Straggle time.Duration
}

// Run makes a new key, seals everything again with it, and only then drops the
// keys before it. Managers may run meanwhile. Cut anywhere, it continues when it is
// run again. A value that no key opens keeps the old keys.
func (r Rekeyer) Run(ctx context.Context) (err error) {
	conn, err := r.DB.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	if err := alone(ctx, conn); err != nil {
		return err
	}
	defer func() {
		_, e := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", lock)
		err = errors.Join(err, e)
	}()
	if err := seal.Add(r.Dir); err != nil {
		return fmt.Errorf("add a key: %w", err)
	}
	ring, err := seal.Load(r.Dir)
	if err != nil {
		return err
	}
	if err := r.all(ctx, conn, ring); err != nil {
		return err
	}
	if r.Straggle == 0 {
		r.Straggle = straggle
	}
	if err := pause(ctx, r.Straggle); err != nil {
		return err
	}
	if err := r.all(ctx, conn, ring); err != nil {
		return err
	}
	if err := seal.Retire(r.Dir); err != nil {
		return fmt.Errorf("drop the old keys: %w", err)
	}
	r.Say("the old keys are gone")
	return nil
}

// alone takes the lock.
func alone(ctx context.Context, conn *sql.Conn) error {
	for begun := time.Now(); ; {
		got := false
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", lock).Scan(&got); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		if got {
			return nil
		}
		if time.Since(begun) > lockWait {
			return fmt.Errorf("somebody else changes the keys now: %w", errdefs.ErrFailedPrecondition)
		}
		if err := pause(ctx, lockLook); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// all seals every column again.
func (r Rekeyer) all(ctx context.Context, conn *sql.Conn, ring *seal.Ring) error {
	var failed error
	for _, c := range seal.Columns() {
		n, err := column(ctx, conn, ring, c)
		if n > 0 {
			r.Say("%s.%s: %d sealed anew", c.Table, c.Name, n)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s.%s: %w", c.Table, c.Name, err))
		}
	}
	return failed
}

// column seals one column again and tells of how many rows. What cannot be opened
// does not keep the other rows from their turn.
func column(ctx context.Context, conn *sql.Conn, ring *seal.Ring, c seal.Column) (n int, failed error) {
	// What a manager seals again or removes meanwhile is left as it is.
	change := fmt.Sprintf("UPDATE %s SET %[2]s = $1 WHERE id = $2 AND %[2]s = $3", c.Table, c.Name)
	for after := (uuid.UUID{}); ; {
		rows, err := old(ctx, conn, c, ring.Mark(), after)
		if err != nil || len(rows) == 0 {
			return n, errors.Join(failed, err)
		}
		for _, row := range rows {
			after = row.id
			secret, err := ring.Open(c.Purpose, row.sealed)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("row %s: %w", row.id, err))
				continue
			}
			if _, err := conn.ExecContext(ctx, change, ring.Seal(c.Purpose, secret), row.id, row.sealed); err != nil {
				return n, errors.Join(failed, fmt.Errorf("row %s: %w", row.id, err))
			}
			n++
		}
	}
}

type row struct {
	id     uuid.UUID
	sealed []byte
}

// old reads rows that an old key sealed.
func old(ctx context.Context, conn *sql.Conn, c seal.Column, mark []byte, after uuid.UUID) (list []row, err error) {
	query := fmt.Sprintf(`SELECT id, %[1]s FROM %[2]s WHERE id > $1 AND length(%[1]s) > 0 AND substr(%[1]s, 1, $2) <> $3
		ORDER BY id LIMIT %[3]d`, c.Name, c.Table, batch)
	rows, err := conn.QueryContext(ctx, query, after, len(mark), mark)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var one row
		if err := rows.Scan(&one.id, &one.sealed); err != nil {
			return nil, fmt.Errorf("read rows: %w", err)
		}
		list = append(list, one)
	}
	return list, rows.Err()
}
