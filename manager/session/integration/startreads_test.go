package integration

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
)

// The start of a session reads all of its rows only a few times. The reconciler reads a session
// again neither after its own moves, nor while the session waits, nor while its container starts
// without a change. When its agent has the image, the session makes two moves.
func TestStartsReadLittle(t *testing.T) {
	c := clustertest.New(t, 1)
	c.WaitFor(t, c.Create(t, clustertest.SessionInput(nil, "sleep", "600")), lifecycle.Running) // fetches the image
	const sessions = 12
	var first uuid.UUID
	all := c.Statements.Of(func() {
		var ids []uuid.UUID
		for range sessions {
			ids = append(ids, c.Create(t, clustertest.SessionInput(nil, "sleep", "600")))
		}
		for _, id := range ids {
			c.WaitFor(t, id, lifecycle.Running)
		}
		first = ids[0]
	})
	reads, moves := 0, 0
	for _, q := range all {
		if strings.Contains(q, `FROM "session_mounts"`) { // each read of a session has one
			reads++
		}
		if strings.Contains(q, "UPDATE sessions SET status = ") && !strings.Contains(q, "INSERT INTO allocations") { // a placement moves many
			moves++
		}
	}
	t.Logf("%d statements for %d starts, %d reads of sessions, %d moves; the most frequent:%s", len(all), sessions, reads, moves, mostFrequent(all))
	if history := c.History(t, first); !strings.Contains(history, "scheduled→prepared : image present\nsuccess prepared→creating : starting\n") {
		t.Errorf("the history misses a state:\n%s", history)
	}
	if reads > 3*sessions {
		t.Errorf("%d reads of %d sessions, want at most 3 of each", reads, sessions)
	}
	if moves != 2*sessions {
		t.Errorf("%d moves of %d sessions, want 2 of each", moves, sessions)
	}
}
