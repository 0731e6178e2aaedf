package serving

import (
	"time"

	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/manager/deployment/load"
)

const (
	slotTime  = 5 * time.Second
	slotCount = 12 // a minute
)

// window sums what a replica did in the last minute.
type window struct {
	slots [slotCount]slot
	first time.Time // request
}

// slot is the sum over slotTime.
type slot struct {
	at  int64 // number of the slot since 1970
	sum load.Window
}

func slotOf(now time.Time) int64 { return now.UnixNano() / int64(slotTime) }

// add counts a request that has ended.
func (w *window) add(r inference.Record, now time.Time) {
	if w.first.IsZero() {
		w.first = now.Add(r.Waited - r.Duration) // when the replica got it
	}
	at := slotOf(now)
	s := &w.slots[at%slotCount]
	if s.at != at {
		*s = slot{at: at}
	}
	s.sum.Requests++
	if r.Status >= 500 {
		s.sum.Errors++
	}
	s.sum.Prompt += r.Usage.Prompt
	s.sum.Completion += r.Usage.Completion
	s.sum.Cached += r.Usage.Cached
	if r.FirstByte > 0 && r.Status < 400 {
		s.sum.FirstByte.Add(r.FirstByte - r.Waited) // without the start of the replica
		if r.Usage.Completion > 1 {
			s.sum.PerToken.Add((r.Duration - r.FirstByte) / time.Duration(r.Usage.Completion-1))
		}
	}
}

// sum returns the sum over the last minute.
func (w *window) sum(now time.Time) load.Window {
	var out load.Window
	if w.first.IsZero() {
		return out
	}
	oldest := slotOf(now) - slotCount + 1
	for _, s := range w.slots {
		if s.at >= oldest {
			out.Add(s.sum)
		}
	}
	start := time.Unix(0, oldest*int64(slotTime))
	if w.first.After(start) {
		start = w.first
	}
	out.Seconds = max(now.Sub(start).Seconds(), 1)
	return out
}
