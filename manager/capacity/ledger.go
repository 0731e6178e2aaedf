package capacity

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/uuid"
)

// Span is a time in which a device had a capacity. Times are in microseconds since 1970.
type Span struct {
	Device, Agent, Group uuid.UUID
	Slot                 string
	Amount               int64
	Out                  bool // out of service
	From, To             int64
}

// Use is an amount of a device that belongs to a session.
type Use struct {
	Device   uuid.UUID
	Agent    uuid.UUID
	Slot     string
	Amount   int64
	From, To int64
	Started  int64 // when the session ran; never: none
	Busy     int64 // the used part in millionths; unmeasured: none
}

const none = math.MaxInt64

// Unmeasured is the busy part of a session without measurements, and Never the start of one that never ran.
const (
	Unmeasured = -1
	Never      = none
)

// Key is what a row is about; a dimension that is not asked for is zero.
type Key struct {
	Slot   string
	Group  uuid.UUID
	Agent  uuid.UUID
	Bucket int
}

// Row is capacity times time of one key, in amounts times microseconds. Capacity is the sum of Used, Idle, Unmeasured, Promised,
// Unallocated and Out.
type Row struct {
	Key
	Capacity    Sum
	Used        Sum // by sessions that ran
	Idle        Sum // allocated to them and not used
	Unmeasured  Sum // allocated to them
	Promised    Sum // allocated to sessions that were starting
	Unallocated Sum
	Out         Sum // out of service and not allocated
	Beyond      Sum // allocated on devices that had disappeared or become smaller; not part of the capacity
}

// Cut says how a window of time is divided.
type Cut struct {
	Bounds           []int64 // of the steps: one more than steps
	ByGroup, ByAgent bool
}

// place is one slot of one device.
type place struct {
	device uuid.UUID
	slot   string
}

// Split divides capacity times time exactly.
func Split(spans []Span, uses []Use, c Cut) []Row {
	at := map[place]*line{}
	of := func(p place) *line {
		if at[p] == nil {
			at[p] = &line{}
		}
		return at[p]
	}
	for i := range spans {
		l := of(place{spans[i].Device, spans[i].Slot})
		l.spans = append(l.spans, &spans[i])
	}
	for i := range uses {
		l := of(place{uses[i].Device, uses[i].Slot})
		l.uses = append(l.uses, &uses[i])
	}
	rows := map[Key]*Row{}
	for p, l := range at {
		l.sweep(p, c, rows)
	}
	out := make([]Row, 0, len(rows))
	for _, r := range rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Slot, b.Slot), slices.Compare(a.Group[:], b.Group[:]), slices.Compare(a.Agent[:], b.Agent[:]))
	})
	return out
}

// line is the past of one place.
type line struct {
	spans []*Span
	uses  []*Use
}

// change is what changes at a time.
type change struct {
	at   int64
	span *Span // that begins or ends
	ends bool
	// Of the allocated amounts.
	measured, busy, unmeasured, promised int64
}

func (l *line) changes(from, to int64) []change {
	var list []change
	add := func(from2, to2 int64, up change) {
		from2, to2 = max(from, from2), min(to, to2)
		if from2 >= to2 {
			return
		}
		down := change{at: to2, span: up.span, ends: true, measured: -up.measured, busy: -up.busy, unmeasured: -up.unmeasured, promised: -up.promised}
		up.at = from2
		list = append(list, up, down)
	}
	for _, s := range l.spans {
		add(s.From, s.To, change{span: s})
	}
	for _, u := range l.uses {
		start := min(max(u.Started, u.From), u.To)
		add(u.From, start, change{promised: u.Amount})
		if u.Busy < 0 {
			add(start, u.To, change{unmeasured: u.Amount})
		} else {
			add(start, u.To, change{measured: u.Amount, busy: u.Amount * min(u.Busy, whole)})
		}
	}
	slices.SortFunc(list, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return list
}

// whole is a busy part of everything.
const whole = 1_000_000

// sweep adds the times between two changes to the rows.
func (l *line) sweep(p place, c Cut, rows map[Key]*Row) {
	from, to := c.Bounds[0], c.Bounds[len(c.Bounds)-1]
	var now change
	open := map[*Span]bool{}
	var span, last *Span
	key := Key{Slot: p.slot}
	var agent uuid.UUID
	if len(l.uses) > 0 {
		agent = l.uses[0].Agent
	}
	for _, s := range l.spans {
		if last == nil || s.From < last.From {
			last = s
		}
	}
	bucket := 0
	at := from
	until := func(end int64) {
		for at < end {
			for c.Bounds[bucket+1] <= at {
				bucket++
			}
			next := min(end, c.Bounds[bucket+1])
			key.Bucket = bucket
			if c.ByAgent {
				key.Agent = agent
			}
			if last != nil {
				if c.ByGroup {
					key.Group = last.Group
				}
				if c.ByAgent {
					key.Agent = last.Agent
				}
			}
			divide(rows, key, span, now, uint64(next-at))
			at = next
		}
	}
	for _, ch := range l.changes(from, to) {
		until(ch.at)
		now.measured += ch.measured
		now.busy += ch.busy
		now.unmeasured += ch.unmeasured
		now.promised += ch.promised
		switch {
		case ch.span == nil:
			continue
		case ch.ends:
			delete(open, ch.span)
		default:
			open[ch.span] = true
		}
		span = latest(open)
		if span != nil {
			last = span
		}
	}
	until(to)
}

// latest returns the span that began last, if several are open at the same time.
func latest(open map[*Span]bool) (out *Span) {
	for s := range open {
		if out == nil || s.From > out.From || s.From == out.From && s.Amount > out.Amount {
			out = s
		}
	}
	return out
}

// divide adds a time without changes.
func divide(rows map[Key]*Row, key Key, span *Span, now change, time uint64) {
	var capacity int64
	if span != nil {
		capacity = span.Amount
	}
	all := now.measured + now.unmeasured + now.promised
	if capacity == 0 && all == 0 {
		return
	}
	r := rows[key]
	if r == nil {
		r = &Row{Key: key}
		rows[key] = r
	}
	measured := min(now.measured, capacity)
	unmeasured := min(now.unmeasured, capacity-measured)
	promised := min(now.promised, capacity-measured-unmeasured)
	rest := capacity - measured - unmeasured - promised
	r.Capacity.add(times(capacity, time))
	total := times(measured, time)
	used := least(times(now.busy, time).per(whole), total)
	r.Used.add(used)
	r.Idle.add(total.minus(used))
	r.Unmeasured.add(times(unmeasured, time))
	r.Promised.add(times(promised, time))
	if span != nil && span.Out {
		r.Out.add(times(rest, time))
	} else {
		r.Unallocated.add(times(rest, time))
	}
	r.Beyond.add(times(all-measured-unmeasured-promised, time))
}
