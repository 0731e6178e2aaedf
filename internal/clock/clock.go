// Package clock returns the time with the precision of the database, and waits.
package clock

import (
	"context"
	"time"
)

// Now is in UTC with microseconds, the precision of PostgreSQL, so that a stored time equals
// the original.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Pause waits for d. If ctx ends first, it returns the error of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
