package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// mostFrequent lists the most frequent statements by their first words.
func mostFrequent(all []string) (text string) {
	count := map[string]int{}
	for _, q := range all {
		from := max(strings.Index(q, "FROM"), 0)
		count[q[:min(len(q), 16)]+" … "+q[from:min(len(q), from+60)]]++
	}
	list := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return count[b] - count[a] })
	for _, q := range list[:min(len(list), 20)] {
		text += fmt.Sprintf("\n%4d %s", count[q], q)
	}
	return text
}

// Neither the reconciler nor the scheduler reads unchanged running sessions again and again. The
// number of statements within some seconds does not grow with the number of sessions.
func TestIdleSessionsAreNotRead(t *testing.T) {
	c := clustertest.New(t, 1)
	const sessions = 12
	for range sessions {
		id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
		c.WaitFor(t, id, lifecycle.Running)
	}
	const window = 12 * time.Second // two passes of the reconciler
	reads := 0
	managertest.Eventually(t, "the sessions are read no more", func() bool {
		reads = 0
		all := c.Statements.Of(func() { time.Sleep(window) })
		for _, q := range all {
			// Each read of a session includes the first statement, and each repair of the scheduler
			// the second.
			if strings.Contains(q, `FROM "session_mounts"`) || strings.Contains(q, `FROM "slot_types"`) {
				reads++
			}
		}
		t.Logf("%d statements in %s with %d idle sessions, %d reads of sessions; the most frequent:%s", len(all), window, sessions, reads, mostFrequent(all))
		return reads == 0 // all sessions are read once a minute: four of five windows have no read
	})
}
