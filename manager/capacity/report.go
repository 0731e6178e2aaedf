package capacity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/stats"
	"github.com/berthhq/berth/manager/store"
)

// CapacityDimension is what the rows of a report are grouped by.
type CapacityDimension string

// The dimensions. A report can have one of time.
const (
	ByResourceGroup CapacityDimension = "RESOURCE_GROUP"
	ByAgent         CapacityDimension = "AGENT"
	ByHour          CapacityDimension = "HOUR"
	ByDay           CapacityDimension = "DAY"
	ByWeek          CapacityDimension = "WEEK"
	ByMonth         CapacityDimension = "MONTH"
)

// CapacityReportInput selects and groups capacity.
type CapacityReportInput struct {
	From          time.Time
	To            *time.Time
	By            []CapacityDimension
	TimeZone      *string
	ResourceGroup *uuid.UUID
	Slot          *string
}

// CapacityReport is capacity times time since a time.
type CapacityReport struct {
	Since *time.Time // when the record begins, if that is later than the input; nil without a record
	Rows  []*CapacityRow
}

// CapacityRow is about one slot of one group, machine or step of time, in slot-seconds as exact decimals.
type CapacityRow struct {
	Slot                                                                          string
	Keys                                                                          []*CapacityKey
	Capacity, Used, Idle, Unmeasured, Promised, Unallocated, OutOfService, Beyond string
}

// CapacityKey is the value of one dimension.
type CapacityKey struct {
	Dimension CapacityDimension
	Value     string
	Label     string
}

// readTime limits a statement, and maxRows a report.
const (
	readTime = 15 * time.Second
	maxRows  = 10_000
)

// Report divides the capacity of a time. The viewer must be able to see all sessions, because the parts say what others do.
func Report(ctx context.Context, client *ent.Client, in CapacityReportInput) (*CapacityReport, error) {
	v := viewer.From(ctx)
	if v == nil || !v.SeesAll() && len(v.Granted(access.Read, access.Session, access.OnSystem)) == 0 {
		return nil, fmt.Errorf("you cannot see the sessions of the whole cluster: %w", errdefs.ErrPermissionDenied)
	}
	to := clock.Now()
	if in.To != nil && in.To.Before(to) { // the future is not known
		to = *in.To
	}
	ctx = store.StatementTimeout(viewer.SystemContext(ctx), readTime)
	first, err := begins(ctx, client)
	if err != nil {
		return nil, err
	}
	out := &CapacityReport{Rows: []*CapacityRow{}}
	if first.IsZero() || !first.Before(to) {
		return out, nil
	}
	from := in.From
	if first.After(from) {
		from = first
	}
	out.Since = &from
	bounds, err := stats.Steps(from, to, in.TimeZone, dimensions(in.By))
	if err != nil {
		return nil, err
	}
	c := Cut{ByGroup: in.ResourceGroup != nil || slices.Contains(in.By, ByResourceGroup), ByAgent: slices.Contains(in.By, ByAgent)}
	for _, b := range bounds {
		c.Bounds = append(c.Bounds, b.UnixMicro())
	}
	spans, uses, err := load(ctx, client, bounds[0], bounds[len(bounds)-1], in.Slot)
	if err != nil {
		return nil, err
	}
	rows := Split(spans, uses, c)
	if in.ResourceGroup != nil {
		rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Group != *in.ResourceGroup })
	}
	if len(rows) > maxRows {
		return nil, problem.Invalid("by", "gives more than %d rows: choose a shorter time, fewer dimensions or a filter", maxRows).WithLimit(fmt.Sprint(maxRows))
	}
	return out, in.rows(ctx, client, bounds, rows, out)
}

func dimensions(by []CapacityDimension) (out []stats.UsageDimension) {
	for _, d := range by {
		out = append(out, stats.UsageDimension(d))
	}
	return out
}

// begins returns when the record begins.
func begins(ctx context.Context, client *ent.Client) (at time.Time, err error) {
	rows, err := client.QueryContext(ctx, `SELECT began_at FROM capacity_spans ORDER BY id LIMIT 1`)
	if err != nil {
		return at, fmt.Errorf("find the begin of the record of capacity: %w", err)
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&at)
	}
	return at.UTC(), err
}

// load reads the ledger of a time.
func load(ctx context.Context, client *ent.Client, from, to time.Time, slot *string) (spans []Span, uses []Use, err error) {
	rows, err := client.QueryContext(ctx, `SELECT device_id, agent_id, resource_group_id, slot, amount, out,
  (EXTRACT(EPOCH FROM began_at) * 1000000)::bigint, COALESCE((EXTRACT(EPOCH FROM ended_at) * 1000000)::bigint, $4)
FROM capacity_spans WHERE began_at < $2 AND (ended_at IS NULL OR ended_at > $1) AND ($3::text IS NULL OR slot = $3)`, from, to, slot, int64(none))
	if err != nil {
		return nil, nil, fmt.Errorf("read spans of capacity: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var s Span
		if err := rows.Scan(&s.Device, &s.Agent, &s.Group, &s.Slot, &s.Amount, &s.Out, &s.From, &s.To); err != nil {
			return nil, nil, err
		}
		spans = append(spans, s)
	}
	if err := rows.Err(); err != nil {
		return nil, nil, err
	}
	uses, err = loadUses(ctx, client, from, to, slot)
	return spans, uses, err
}

// The begin of the run of the first attempt is in the row of the session, that of others in its history.
const allocated = `SELECT a.device_id, a.agent_id, a.slot, a.amount, (EXTRACT(EPOCH FROM a.created_at) * 1000000)::bigint,
  COALESCE((EXTRACT(EPOCH FROM a.freed_at) * 1000000)::bigint, $4),
  COALESCE((EXTRACT(EPOCH FROM CASE WHEN s.attempt = 1 THEN s.started_at ELSE (SELECT min(e.at) FROM session_events e
    WHERE e.session_id = a.session_id AND e.to_status = 'running' AND e.from_status <> 'running' AND e.at >= a.created_at AND (a.freed_at IS NULL OR e.at <= a.freed_at)) END) * 1000000)::bigint, $4),
  COALESCE((u.mean / NULLIF(u.asked, 0) * 1000000)::bigint, -1)
FROM allocations a JOIN sessions s ON s.id = a.session_id
LEFT JOIN session_uses u ON u.session_id = a.session_id AND u.slot = a.slot AND (u.metric = 'mem_used' OR u.metric LIKE '%\_util')
WHERE a.created_at < $2 AND (a.freed_at IS NULL OR a.freed_at > $1) AND ($3::text IS NULL OR a.slot = $3)`

func loadUses(ctx context.Context, client *ent.Client, from, to time.Time, slot *string) (uses []Use, err error) {
	rows, err := client.QueryContext(ctx, allocated, from, to, slot, int64(none))
	if err != nil {
		return nil, fmt.Errorf("read allocations: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var u Use
		if err := rows.Scan(&u.Device, &u.Agent, &u.Slot, &u.Amount, &u.From, &u.To, &u.Started, &u.Busy); err != nil {
			return nil, err
		}
		uses = append(uses, u)
	}
	return uses, rows.Err()
}

// rows adds labels and units.
func (in CapacityReportInput) rows(ctx context.Context, client *ent.Client, bounds []time.Time, list []Row, into *CapacityReport) error {
	loc := time.UTC
	if in.TimeZone != nil {
		loc, _ = time.LoadLocation(*in.TimeZone) // checked before
	}
	names := map[CapacityDimension]map[uuid.UUID]string{ByResourceGroup: {}, ByAgent: {}}
	for _, r := range list {
		names[ByResourceGroup][r.Group], names[ByAgent][r.Agent] = "", ""
	}
	for _, d := range in.By {
		if err := stats.Label(ctx, client, stats.UsageDimension(d), names[d]); err != nil {
			return err
		}
	}
	for _, r := range list {
		row := &CapacityRow{Slot: r.Slot, Keys: []*CapacityKey{}}
		for _, d := range in.By {
			k := &CapacityKey{Dimension: d}
			switch d {
			case ByResourceGroup:
				k.Value, k.Label = r.Group.String(), names[d][r.Group]
			case ByAgent:
				k.Value, k.Label = r.Agent.String(), names[d][r.Agent]
			default:
				at := bounds[r.Bucket]
				k.Value, k.Label = at.UTC().Format(time.RFC3339), stats.TimeLabel(stats.UsageDimension(d), at.In(loc))
			}
			row.Keys = append(row.Keys, k)
		}
		for _, f := range []struct {
			to *string
			of Sum
		}{
			{&row.Capacity, r.Capacity}, {&row.Used, r.Used}, {&row.Idle, r.Idle}, {&row.Unmeasured, r.Unmeasured}, {&row.Promised, r.Promised},
			{&row.Unallocated, r.Unallocated}, {&row.OutOfService, r.Out}, {&row.Beyond, r.Beyond},
		} {
			*f.to = slotSeconds(r.Slot, f.of)
		}
		into.Rows = append(into.Rows, row)
	}
	return nil
}

// slotSeconds converts a sum to the unit of the slot times seconds, without rounding.
func slotSeconds(slot string, s Sum) string {
	digits := 6 + int(resource.Scale(slot))
	text := s.Int().String()
	if len(text) <= digits {
		text = strings.Repeat("0", digits+1-len(text)) + text
	}
	point := len(text) - digits
	return strings.TrimSuffix(strings.TrimRight(text[:point]+"."+text[point:], "0"), ".")
}
