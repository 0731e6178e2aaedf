package agents

import (
	"fmt"
	"slices"
	"time"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/report"
)

const (
	// maxOffset is the largest tolerated difference between an agent's clock and the leader's.
	// Logs, samples and tickets contain times, and users notice differences of some seconds.
	maxOffset = 10 * time.Second
	// offsetsKept is the number of consecutive heartbeats that must agree on the offset.
	// Heartbeats that were delayed in a connection are late by different times.
	offsetsKept = 4
	// jitter is how far these offsets can differ.
	jitter = 2 * time.Second
)

// tick records the time of an agent's heartbeat.
func (c *conn) tick(now time.Time, unixMs int64) {
	if unixMs == 0 {
		return
	}
	c.offsets = append(c.offsets, time.UnixMilli(unixMs).Sub(now))
	c.offsets = c.offsets[max(0, len(c.offsets)-offsetsKept):]
}

// skew returns the condition of an agent's clock, given the previous one; nil while too few
// heartbeats have arrived.
func (c *conn) skew(before *report.Condition) *report.Condition {
	if len(c.offsets) < offsetsKept || slices.Max(c.offsets)-slices.Min(c.offsets) > jitter {
		return before
	}
	// Heartbeats arrive late and never early, so the largest offset is the most exact.
	offset := slices.Max(c.offsets)
	limit := maxOffset
	if before != nil && before.Status {
		limit -= jitter // hysteresis, so that the condition does not flap at the limit
	}
	away := max(offset, -offset)
	k := &report.Condition{Type: report.ClockSkew, Status: away > limit, Reason: "its clock agrees with the manager's"}
	if away >= jitter {
		k.Reason = fmt.Sprintf("its clock is %s off the manager's", away.Round(time.Second))
	}
	return k
}

// judge adds the condition of the clock to those that an agent reports, and reports whether a
// status has changed.
func (c *conn) judge(now time.Time, said []*agentpb.Condition) (list []report.Condition, changed bool) {
	list = []report.Condition{}
	for _, k := range said {
		list = append(list, report.Condition{Type: k.Type, Status: k.Status, Reason: k.Reason})
	}
	if k := c.skew(find(c.conditions, report.ClockSkew)); k != nil {
		list = append(list, *k)
	}
	for i := range list {
		k := &list[i]
		old := find(c.conditions, k.Type)
		if k.Since = now; old != nil && old.Status == k.Status {
			k.Since = old.Since
		}
		changed = changed || k.Status != (old != nil && old.Status)
	}
	for _, old := range c.conditions {
		changed = changed || old.Status && find(list, old.Type) == nil
	}
	return list, changed
}

func find(list []report.Condition, kind string) *report.Condition {
	for i := range list {
		if list[i].Type == kind {
			return &list[i]
		}
	}
	return nil
}
