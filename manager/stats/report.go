package stats

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/price"
)

// UsageDimension is what the rows of a report are grouped by.
type UsageDimension string

// The dimensions. A report can have one of time.
const (
	BySlot          UsageDimension = "SLOT"
	ByUser          UsageDimension = "USER"
	ByProject       UsageDimension = "PROJECT"
	ByDomain        UsageDimension = "DOMAIN"
	ByResourceGroup UsageDimension = "RESOURCE_GROUP"
	ByAgent         UsageDimension = "AGENT"
	ByDevice        UsageDimension = "DEVICE"
	ByImage         UsageDimension = "IMAGE"
	BySessionType   UsageDimension = "SESSION_TYPE"
	BySessionID     UsageDimension = "SESSION"
	ByDeployment    UsageDimension = "DEPLOYMENT"
	ByHour          UsageDimension = "HOUR"
	ByDay           UsageDimension = "DAY"
	ByWeek          UsageDimension = "WEEK"
	ByMonth         UsageDimension = "MONTH"
)

// dimensions are the SQL expressions of dimensions that are not of time, on a row of allocations.
var dimensions = map[UsageDimension]string{
	BySlot: "allocations.slot", ByUser: "allocations.owner_id", ByProject: "allocations.project_id", ByDomain: "allocations.domain_id",
	ByAgent: "allocations.agent_id", ByDevice: "allocations.device_id", BySessionID: "allocations.session_id",
	ByResourceGroup: "(SELECT s.resource_group_id FROM sessions s WHERE s.id = allocations.session_id)",
	ByImage:         "(SELECT s.image_id FROM sessions s WHERE s.id = allocations.session_id)",
	BySessionType:   "(SELECT s.type FROM sessions s WHERE s.id = allocations.session_id)",
	ByDeployment:    "(SELECT r.deployment_id FROM deployment_replicas r WHERE r.session_id = allocations.session_id LIMIT 1)",
}

// UsageReportInput selects and groups usage.
type UsageReportInput struct {
	From          time.Time
	To            *time.Time
	By            []UsageDimension
	TimeZone      *string
	User          *uuid.UUID
	Project       *uuid.UUID
	Domain        *uuid.UUID
	ResourceGroup *uuid.UUID
	Agent         *uuid.UUID
	Image         *uuid.UUID
	Deployment    *uuid.UUID
	Slot          *string
}

// UsageRow is the usage of one group.
type UsageRow struct {
	Slot                string
	Keys                []UsageKey
	SlotSeconds         string  // exact decimal, in the slot's unit
	Cost                *string // rounded by price.Apportion; nil: no price applied
	UnpricedSlotSeconds string  // part of SlotSeconds to which no price applied
}

// UsageKey is the value of one dimension.
type UsageKey struct {
	Dimension UsageDimension
	Value     string // an id, a name, or when a step of time begins; empty: none
	Label     string
}

const (
	maxBuckets = 1000
	maxRows    = 10_000
	maxParts   = 2 * maxBuckets // steps, cut where prices begin
	maxSums    = 20 * maxRows   // of the statement
)

// bucket is a step of time, or a part of one.
type bucket struct {
	from, to time.Time
	label    time.Time // when the step begins
}

// Report sums the allocations that the viewer can see, by slot and by the dimensions. Sums are exact: the sums of all rows are the same for
// every choice of dimensions, and so are the sums of costs.
func Report(ctx context.Context, client *ent.Client, in UsageReportInput) ([]UsageRow, error) {
	to := clock.Now()
	if in.To != nil {
		to = *in.To
	}
	buckets, err := in.buckets(to.Truncate(time.Microsecond))
	if err != nil {
		return nil, err
	}
	prices, err := price.Load(ctx, client)
	if err != nil {
		return nil, err
	}
	parts, err := in.sum(ctx, client, prices, buckets)
	if err != nil {
		return nil, err
	}
	sums := fold(prices, parts)
	if len(sums) > maxRows {
		return nil, tooMany()
	}
	return in.rows(ctx, client, sums)
}

func tooMany() error {
	return problem.Invalid("by", "gives more than %d rows: choose a shorter time, fewer dimensions or a filter", maxRows).WithLimit(fmt.Sprint(maxRows))
}

// sum runs the statement. Steps of time are cut where a price begins, so that one price applies to each of the sums.
func (in UsageReportInput) sum(ctx context.Context, client *ent.Client, prices *price.Table, steps []bucket) ([]part, error) {
	buckets := cut(steps, prices)
	if len(buckets) > maxParts {
		return nil, problem.Invalid("by", "gives more than %d steps of time between changes of prices: choose a longer step or a shorter time", maxParts).WithLimit(fmt.Sprint(maxParts))
	}
	q := client.Allocation.Query().Where(allocation.CreatedAtLT(buckets[len(buckets)-1].to), allocation.Or(allocation.FreedAtIsNil(), allocation.FreedAtGT(buckets[0].from)))
	in.narrow(q)
	var rows []part
	if err := q.Modify(func(s *sql.Selector) { in.group(s, buckets, prices.Grouped()) }).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("sum usage: %w", err)
	}
	if len(rows) > maxSums {
		return nil, tooMany()
	}
	for i := range rows {
		rows[i].at = buckets[rows[i].Part].from
	}
	return rows, nil
}

func (in UsageReportInput) narrow(q *ent.AllocationQuery) {
	for _, f := range []struct {
		id *uuid.UUID
		by UsageDimension
	}{
		{in.User, ByUser}, {in.Project, ByProject}, {in.Domain, ByDomain}, {in.ResourceGroup, ByResourceGroup}, {in.Agent, ByAgent},
		{in.Image, ByImage}, {in.Deployment, ByDeployment},
	} {
		if f.id != nil {
			q.Where(func(s *sql.Selector) {
				s.Where(sql.P(func(b *sql.Builder) { b.WriteString(dimensions[f.by] + " = ").Arg(*f.id) }))
			})
		}
	}
	if in.Slot != nil {
		q.Where(allocation.Slot(*in.Slot))
	}
}

// group makes the statement sum by slot and dimensions in each part of time and, if groups have prices of their own, by resource group.
func (in UsageReportInput) group(s *sql.Selector, buckets []bucket, grouped bool) {
	var values []string
	for i, b := range buckets {
		values = append(values, fmt.Sprintf("(%d, %s, %s, %d)", i, literal(b.from), literal(b.to), b.label.Unix()))
	}
	s.AppendFromExpr(sql.Expr("(VALUES " + strings.Join(values, ", ") + ") AS b(part, lo, hi, label)"))
	s.Where(sql.ExprP("allocations.created_at < b.hi AND (allocations.freed_at IS NULL OR allocations.freed_at > b.lo)"))
	keys := []string{"''"}
	for _, d := range in.By {
		expr, plain := dimensions[d]
		if !plain {
			expr = "b.label"
		}
		keys = append(keys, "COALESCE(("+expr+")::text, '')")
	}
	of := "(''::text)"
	if grouped {
		of = "COALESCE((" + dimensions[ByResourceGroup] + ")::text, '')"
	}
	used := "SUM(allocations.amount::numeric * EXTRACT(EPOCH FROM (LEAST(COALESCE(allocations.freed_at, b.hi), b.hi) - GREATEST(allocations.created_at, b.lo)))::numeric)"
	s.Select(s.C(allocation.FieldSlot), sql.As("(b.part)", "part"), sql.As(of, "price_group"),
		sql.As("concat_ws(E'\\t', "+strings.Join(keys, ", ")+")", "keys"), sql.As("("+used+")::text", "used")).
		GroupBy(s.C(allocation.FieldSlot), "keys", "part", "price_group").OrderExpr(sql.Expr("keys, allocations.slot, b.part")).Limit(maxSums + 1)
}

// buckets returns the steps of time, one for the whole time without a dimension of time.
func (in UsageReportInput) buckets(to time.Time) ([]bucket, error) {
	if !in.From.Before(to) {
		return nil, problem.Invalid("from", "must be before to")
	}
	loc := time.UTC
	if in.TimeZone != nil {
		var err error
		if loc, err = time.LoadLocation(*in.TimeZone); err != nil || *in.TimeZone == "Local" {
			return nil, problem.Invalid("timeZone", "is not the name of a time zone, such as Europe/Berlin")
		}
	}
	var step UsageDimension
	for i, d := range in.By {
		if slices.Contains(in.By[:i], d) {
			return nil, problem.Invalid("by", "names %s twice", d)
		}
		if _, plain := dimensions[d]; plain {
			continue
		}
		if step != "" {
			return nil, problem.Invalid("by", "can have one dimension of time, not %s and %s", step, d)
		}
		step = d
	}
	from := in.From.Truncate(time.Microsecond)
	if step == "" {
		return []bucket{{from, to, from}}, nil
	}
	var out []bucket
	for at := begin(step, from.In(loc)); at.Before(to); at = next(step, at) {
		if len(out) == maxBuckets {
			return nil, problem.Invalid("by", "gives more than %d steps of time: choose a longer step or a shorter time", maxBuckets).WithLimit(fmt.Sprint(maxBuckets))
		}
		b := bucket{at, next(step, at), at}
		if b.from.Before(from) {
			b.from, b.label = from, from
		}
		if b.to.After(to) {
			b.to = to
		}
		out = append(out, b)
	}
	return out, nil
}

// begin returns when the step of a time begins, by the calendar of its location.
func begin(step UsageDimension, at time.Time) time.Time {
	y, m, d := at.Date()
	switch step {
	case ByHour:
		return at.Truncate(time.Hour)
	case ByWeek: // Monday, as in ISO 8601
		return time.Date(y, m, d-(int(at.Weekday())+6)%7, 0, 0, 0, 0, at.Location())
	case ByMonth:
		return time.Date(y, m, 1, 0, 0, 0, 0, at.Location())
	default:
		return time.Date(y, m, d, 0, 0, 0, 0, at.Location())
	}
}

// next returns when the following step begins. Days have 23 to 25 hours where clocks change.
func next(step UsageDimension, at time.Time) time.Time {
	y, m, d := at.Date()
	switch step {
	case ByHour:
		return at.Add(time.Hour)
	case ByWeek:
		return time.Date(y, m, d+7, 0, 0, 0, 0, at.Location())
	case ByMonth:
		return time.Date(y, m+1, 1, 0, 0, 0, 0, at.Location())
	default:
		return time.Date(y, m, d+1, 0, 0, 0, 0, at.Location())
	}
}

// Steps returns the bounds of the steps of time of a report with these dimensions, one more than there are steps.
func Steps(from, to time.Time, zone *string, by []UsageDimension) ([]time.Time, error) {
	buckets, err := UsageReportInput{From: from, TimeZone: zone, By: by}.buckets(to.Truncate(time.Microsecond))
	if err != nil {
		return nil, err
	}
	out := []time.Time{buckets[0].from}
	for _, b := range buckets {
		out = append(out, b.to)
	}
	return out, nil
}

// Label fills in the names of objects of a dimension, as far as the viewer can see them.
func Label(ctx context.Context, client *ent.Client, d UsageDimension, set map[uuid.UUID]string) error {
	return label(ctx, client, d, set)
}

// TimeLabel returns the name of a step that begins at a time.
func TimeLabel(d UsageDimension, at time.Time) string { return at.Format(layouts[d]) }
