package manager_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
)

// The start of a session reads all of it a few times only: the reconciler does not
// look again for its own moves, nor at sessions that wait.
func TestStartsReadLittle(t *testing.T) {
	c := newCluster(t, 1)
	const sessions = 12
	all := c.Statements.Of(func() {
		var ids []uuid.UUID
		for range sessions {
			ids = append(ids, c.create(t, input(nil, "sleep", "600")))
		}
		for _, id := range ids {
			c.reaches(t, id, lifecycle.Running)
		}
	})
	reads := 0
	for _, q := range all {
		if strings.Contains(q, `FROM "session_mounts"`) { // each read of a session has one
			reads++
		}
	}
	t.Logf("%d statements for %d starts, %d reads of sessions; the most frequent:%s", len(all), sessions, reads, mostFrequent(all))
	if reads > 4*sessions {
		t.Errorf("%d reads of %d sessions, want at most 4 of each", reads, sessions)
	}
}
