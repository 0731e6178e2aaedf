// Package rekey changes the key that encrypts the secrets in the database. The command line of
// the server imports it.
package rekey

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/seal"
)

const (
	batch = 200
	// straggle is the time after which a request that encrypted with the old key has written
	// its row: only one statement is between the two.
	straggle = 3 * time.Second
	// An interrupted run releases its lock with some delay.
	lockWait, lockLook = 3 * time.Second, 50 * time.Millisecond
	// lock is the advisory lock for key changes; the number is "seal".
	lock = 0x7365616c
)

// Rekeyer changes keys. Every field except Straggle must be set.
type Rekeyer struct {
	DB  *sql.DB
	Dir string // directory of the key ring
	// Progress is called with each line of the progress report.
	Progress func(format string, args ...any)
	// Straggle is how long to wait for requests that are in progress; zero: 3 s.
	Straggle time.Duration
}

// Run creates a new key, encrypts all secrets with it, and only then removes the old keys.
// Managers can run meanwhile. An interrupted run can be repeated. If no key can decrypt a
// value, the old keys stay.
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
	if err := clock.Pause(ctx, r.Straggle); err != nil {
		return err
	}
	if err := r.all(ctx, conn, ring); err != nil {
		return err
	}
	if err := seal.Retire(r.Dir); err != nil {
		return fmt.Errorf("drop the old keys: %w", err)
	}
	r.Progress("the old keys are removed")
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
			return fmt.Errorf("another process is changing the keys: %w", errdefs.ErrFailedPrecondition)
		}
		if err := clock.Pause(ctx, lockLook); err != nil {
			return err
		}
	}
}

// all encrypts every column again.
func (r Rekeyer) all(ctx context.Context, conn *sql.Conn, ring *seal.Ring) error {
	var failed error
	for _, c := range seal.Columns() {
		n, err := column(ctx, conn, ring, c)
		if n > 0 {
			r.Progress("%s.%s: %d encrypted again", c.Table, c.Name, n)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s.%s: %w", c.Table, c.Name, err))
		}
	}
	return failed
}

// column encrypts one column again and reports the number of rows. A value that cannot be
// decrypted does not stop the others.
func column(ctx context.Context, conn *sql.Conn, ring *seal.Ring, c seal.Column) (n int, failed error) {
	// A value that a manager encrypts or removes meanwhile is left unchanged.
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

// old reads rows that were encrypted with an old key.
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
