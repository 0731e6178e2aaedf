// Package waste lists sessions, users and machines that use less than they were given, each with the numbers behind it. It reads the
// summaries of package sizing and the allocations, and changes nothing.
package waste

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/sizing"
	"github.com/berthhq/berth/manager/stats"
	"github.com/berthhq/berth/manager/store"
)

// WasteReport is one of the reports.
type WasteReport string

// The reports.
const (
	UnusedAccelerators WasteReport = "UNUSED_ACCELERATORS" // running sessions whose accelerators compute nothing
	LowUse             WasteReport = "LOW_USE"             // users with the most accelerator hours and a low utilization
	MemoryAboveNeed    WasteReport = "MEMORY_ABOVE_NEED"   // running sessions with much more memory than they reached
	SmallerDevice      WasteReport = "SMALLER_DEVICE"      // running sessions that would fit a smaller part of their accelerators
	UnusedMachines     WasteReport = "UNUSED_MACHINES"     // machines without a session
	LongLimits         WasteReport = "LONG_LIMITS"         // users whose sessions end long before their lifetime
	Fragmentation      WasteReport = "FRAGMENTATION"       // sessions whose devices are spread over more machines than needed
	MostSlots          WasteReport = "MOST_SLOTS"          // users with the most slots now
	LongestWaits       WasteReport = "LONGEST_WAITS"       // sessions that wait the longest
	UnusedMemory       WasteReport = "UNUSED_MEMORY"       // users with the most memory that was never used
)

// WasteInput selects a report.
type WasteInput struct {
	Report WasteReport
	From   *time.Time
	First  *int
}

// WasteRow is a session, a user or a machine; the others are empty.
type WasteRow struct {
	Session, SessionName string
	User, UserEmail      string
	Agent, AgentName     string
	Slot                 string // that the numbers are about
	Quality              string // of the measurements, as in package sizing; an unknown use is not a low use
	Numbers              []*WasteNumber
}

// WasteNumber is one number behind a row; nil: unknown.
type WasteNumber struct {
	Name  string
	Value *float64
	Unit  string
}

const (
	usual = 30 * 24 * time.Hour
	most  = 500
	// readTime limits a statement.
	readTime = 10 * time.Second
)

// found is a row of a statement.
type found struct {
	Session, Owner, Agent *uuid.UUID
	Name                  *string
	Slot                  *string
	Quality               *string
	N1, N2, N3, N4        *float64
}

// number names a value of the rows of a report.
type number struct{ name, unit string }

// reading is how one report is read.
type reading struct {
	numbers []number
	cluster bool // about machines, for viewers who see the whole cluster
	read    func(ctx context.Context, client *ent.Client, from, now time.Time, limit int) ([]found, error)
}

var readings = map[WasteReport]reading{
	UnusedAccelerators: {numbers: []number{{"asked", "slot"}, {"utilization", "percent"}, {"measured", "seconds"}, {"running", "seconds"}}, read: unusedAccelerators},
	LowUse:             {numbers: []number{{"allocated", "slot-seconds"}, {"utilization", "percent"}, {"sessions", "count"}}, read: lowUse},
	MemoryAboveNeed:    {numbers: []number{{"asked", "bytes"}, {"peak", "bytes"}, {"suggested", "bytes"}, {"running", "seconds"}}, read: memoryAboveNeed},
	SmallerDevice:      {numbers: []number{{"asked", "slot"}, {"suggested", "slot"}, {"p95", "percent"}, {"running", "seconds"}}, read: smallerDevice},
	UnusedMachines:     {numbers: []number{{"unused", "seconds"}, {"devices", "count"}}, cluster: true, read: unusedMachines},
	LongLimits:         {numbers: []number{{"sessions", "count"}, {"limit", "seconds"}, {"ran", "seconds"}}, read: longLimits},
	Fragmentation:      {numbers: []number{{"machines", "count"}, {"amount", "slot"}, {"fits", "slot"}}, read: fragmentation},
	MostSlots:          {numbers: []number{{"allocated", "slot"}, {"sessions", "count"}}, read: mostSlots},
	LongestWaits:       {numbers: []number{{"waiting", "seconds"}}, read: longestWaits},
	UnusedMemory:       {numbers: []number{{"allocated", "byte-seconds"}, {"unused", "byte-seconds"}, {"sessions", "count"}}, read: unusedMemory},
}

// Reports returns the names of the reports in their order.
func Reports() []WasteReport {
	return []WasteReport{UnusedAccelerators, LowUse, MemoryAboveNeed, SmallerDevice, UnusedMachines, LongLimits, Fragmentation, MostSlots, LongestWaits, UnusedMemory}
}

// Read returns the rows of a report that the viewer can see, the worst first.
func Read(ctx context.Context, client *ent.Client, in WasteInput) ([]WasteRow, error) {
	r, ok := readings[in.Report]
	if !ok {
		return nil, problem.Invalid("report", "is not a report")
	}
	if v := viewer.From(ctx); r.cluster && (v == nil || !v.SeesAll()) {
		return nil, fmt.Errorf("you cannot see the sessions of the whole cluster: %w", errdefs.ErrPermissionDenied)
	}
	limit := 50
	if in.First != nil {
		limit = *in.First
	}
	if limit < 1 || limit > most {
		return nil, problem.Invalid("first", "must be from 1 to %d", most).WithLimit(fmt.Sprint(most))
	}
	now := clock.Now()
	from := now.Add(-usual)
	if in.From != nil {
		from = *in.From
	}
	list, err := r.read(store.StatementTimeout(ctx, readTime), client, from, now, limit)
	if err != nil {
		return nil, fmt.Errorf("read the report %s: %w", in.Report, err)
	}
	return r.rows(ctx, client, list)
}

// rows adds names.
func (r reading) rows(ctx context.Context, client *ent.Client, list []found) ([]WasteRow, error) {
	users, agents := map[uuid.UUID]string{}, map[uuid.UUID]string{}
	for _, f := range list {
		if f.Owner != nil {
			users[*f.Owner] = ""
		}
		if f.Agent != nil {
			agents[*f.Agent] = ""
		}
	}
	if err := stats.Label(ctx, client, stats.ByUser, users); err != nil {
		return nil, err
	}
	if err := stats.Label(ctx, client, stats.ByAgent, agents); err != nil {
		return nil, err
	}
	out := make([]WasteRow, 0, len(list))
	for _, f := range list {
		row := WasteRow{Session: text(f.Session), SessionName: plain(f.Name), User: text(f.Owner), Agent: text(f.Agent), Slot: plain(f.Slot), Quality: string(sizing.Measured), Numbers: []*WasteNumber{}}
		if f.Owner != nil {
			row.UserEmail = users[*f.Owner]
		}
		if f.Agent != nil {
			row.AgentName = agents[*f.Agent]
		}
		if f.Quality != nil {
			row.Quality = *f.Quality
		}
		for i, value := range []*float64{f.N1, f.N2, f.N3, f.N4}[:len(r.numbers)] {
			row.Numbers = append(row.Numbers, &WasteNumber{Name: r.numbers[i].name, Value: value, Unit: r.numbers[i].unit})
		}
		out = append(out, row)
	}
	return out, nil
}

func text(id *uuid.UUID) string {
	if id == nil {
		return ""
	}
	return id.String()
}

func plain(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
