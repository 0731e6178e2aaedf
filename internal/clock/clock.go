// Package clock returns the time with the precision of the database. The manager's services
// import it.
package clock

import "time"

// Now is in UTC with microseconds, the precision of PostgreSQL, so that a stored time equals
// the original.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
