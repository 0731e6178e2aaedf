// Package wait lets tests wait for a condition instead of a fixed time. Only tests import it.
package wait

import (
	"testing"
	"time"
)

// Timeout limits every wait. Nothing takes a fraction of it, not even on a machine that is busy
// with other tests.
const Timeout = 5 * time.Minute

const (
	first = time.Millisecond
	most  = 25 * time.Millisecond
)

// Until returns as soon as ok is true. It calls ok often at first and then less often, so that
// concurrent tests get the processor. The test fails if ok is not true within Timeout; what names
// the missing event.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(Timeout)
	for pause := first; !ok(); pause = min(2*pause, most) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", Timeout, what)
		}
		time.Sleep(pause)
	}
}

// For is Until for a condition that returns an error: the test fails with the last error.
func For(t testing.TB, ok func() error) {
	t.Helper()
	var err error
	deadline := time.Now().Add(Timeout)
	for pause := first; ; pause = min(2*pause, most) {
		if err = ok(); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v", Timeout, err)
		}
		time.Sleep(pause)
	}
}
