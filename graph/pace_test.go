package graph

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestPace: a subscription to all sessions sends the changes of a session that starts as
// soon as a subscription to that session does, and is slower once much changes.
func TestPace(t *testing.T) {
	id := uuid.New()
	for name, c := range map[string]struct {
		w    follower[int]
		want time.Duration
	}{
		"one entity":                      {follower[int]{feed: feed[int]{id: &id}, reads: 1000}, settle},
		"all sessions, few changes":       {follower[int]{reads: quick}, settle},
		"all sessions, many changes":      {follower[int]{reads: quick + 1}, settleList},
		"a rate of its own":               {follower[int]{feed: feed[int]{every: time.Second}}, time.Second},
		"all sessions, no earlier change": {follower[int]{}, settle},
	} {
		if got := c.w.pace(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
