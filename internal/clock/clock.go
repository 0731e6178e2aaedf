// Package clock tells the time as rows keep it. The manager's services import it.
package clock

import "time"

// Now is in microseconds and UTC, which is what PostgreSQL keeps: what is written
// is equal to what is read.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
