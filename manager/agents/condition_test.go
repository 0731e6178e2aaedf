package agents

import (
	"testing"
	"time"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/report"
)

// TestClockSkew checks that heartbeats that agree on an offset determine an agent's clock, and that
// delayed ones do not.
func TestClockSkew(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		name    string
		offsets []time.Duration
		listed  bool
		holds   bool
	}{
		{"none yet", []time.Duration{time.Minute}, false, false},
		{"right", []time.Duration{0, -time.Second / 10, 0, 0}, true, false},
		{"ahead", []time.Duration{time.Minute, time.Minute, time.Minute, time.Minute - time.Second}, true, true},
		{"behind", []time.Duration{0, 0, 0, 0, -time.Hour, -time.Hour, -time.Hour, -time.Hour}, true, true},
		{"held up", []time.Duration{0, 0, 0, 0, -30 * time.Second, -27 * time.Second, -24 * time.Second, -21 * time.Second}, true, false},
		{"mended", []time.Duration{time.Minute, time.Minute, time.Minute, time.Minute, 0, 0, 0, 0}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := &conn{}
			for _, offset := range c.offsets {
				conn.tick(now, now.Add(offset).UnixMilli())
				conn.conditions, _ = conn.judge(now, nil)
			}
			k := find(conn.conditions, report.ClockSkew)
			if (k != nil) != c.listed || k != nil && k.Status != c.holds {
				t.Errorf("%+v", conn.conditions)
			}
		})
	}
}

// TestConditionsSince checks that a condition keeps its time while its status stays the same.
func TestConditionsSince(t *testing.T) {
	c := &conn{}
	at := time.Unix(1_800_000_000, 0)
	for i, step := range []struct {
		status, changed bool
		since           time.Duration
	}{{false, false, 0}, {false, false, 0}, {true, true, 2}, {true, false, 2}, {false, true, 4}} {
		now := at.Add(time.Duration(i))
		list, changed := c.judge(now, []*agentpb.Condition{{Type: report.DiskPressure, Status: step.status}})
		if changed != step.changed || len(list) != 1 || !list[0].Since.Equal(at.Add(step.since)) {
			t.Errorf("step %d: %+v, changed %t", i, list, changed)
		}
		c.conditions = list
	}
	c.conditions[0].Status = true
	if list, changed := c.judge(at, nil); len(list) != 0 || !changed {
		t.Errorf("an agent that no longer reports a condition: %+v, %t", list, changed)
	}
}
