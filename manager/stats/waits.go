package stats

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessionstart"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// StartStage is a part of the time that a start takes.
type StartStage string

// The stages. The first is the sum of the others.
const (
	StageWait   StartStage = "WAIT"   // from the place in the queue until the session runs
	StageQueue  StartStage = "QUEUE"  // until it has devices
	StagePull   StartStage = "PULL"   // until its machines have the image
	StageCreate StartStage = "CREATE" // until its containers run
)

// stageColumns are the columns of stages.
var stageColumns = map[StartStage]string{
	StageWait: "session_starts.wait_ms", StageQueue: "session_starts.queue_ms", StagePull: "session_starts.pull_ms", StageCreate: "session_starts.create_ms",
}

// WaitDimension is what the rows of a report about waits are grouped by.
type WaitDimension string

// The dimensions. A report can have one of time.
const (
	WaitByUser          WaitDimension = "USER"
	WaitByProject       WaitDimension = "PROJECT"
	WaitByDomain        WaitDimension = "DOMAIN"
	WaitByResourceGroup WaitDimension = "RESOURCE_GROUP"
	WaitByAgent         WaitDimension = "AGENT"
	WaitByImage         WaitDimension = "IMAGE"
	WaitBySessionType   WaitDimension = "SESSION_TYPE"
	WaitByReason        WaitDimension = "REASON"
	WaitByPath          WaitDimension = "PATH"
	WaitByHour          WaitDimension = "HOUR"
	WaitByDay           WaitDimension = "DAY"
	WaitByWeek          WaitDimension = "WEEK"
	WaitByMonth         WaitDimension = "MONTH"
)

// waitColumns are the columns of dimensions that are not of time.
var waitColumns = map[WaitDimension]string{
	WaitByUser: "session_starts.owner_id", WaitByProject: "session_starts.project_id", WaitByDomain: "session_starts.domain_id",
	WaitByResourceGroup: "session_starts.resource_group_id", WaitByAgent: "session_starts.agent_id",
	WaitByImage: "session_starts.image_id", WaitBySessionType: "session_starts.session_type",
	WaitByReason: "session_starts.reason", WaitByPath: "session_starts.path",
}

// The smallest numbers of sessions and of their users in a row about other users.
const (
	leastSessions = 5
	leastUsers    = 3
)

// WaitReportInput selects and groups starts of sessions.
type WaitReportInput struct {
	From          time.Time
	To            *time.Time
	By            []WaitDimension
	Stage         *StartStage
	TimeZone      *string
	Everyone      *bool
	User          *uuid.UUID
	Project       *uuid.UUID
	Domain        *uuid.UUID
	ResourceGroup *uuid.UUID
	Agent         *uuid.UUID
	Image         *uuid.UUID
}

// WaitRow is about the starts of one group, in seconds with three significant digits. A nil value is not shown.
type WaitRow struct {
	Keys          []WaitKey
	Count         int
	P50, P90, P99 *float64
	Max           *float64
}

// WaitKey is the value of one dimension.
type WaitKey struct {
	Dimension WaitDimension
	Value     string
	Label     string
}

// Waits returns percentiles of the starts that the viewer can see or, with Everyone, of all starts in resource groups that they can use.
func Waits(ctx context.Context, client *ent.Client, in WaitReportInput) ([]WaitRow, error) {
	to := clock.Now()
	if in.To != nil {
		to = *in.To
	}
	all := in.Everyone != nil && *in.Everyone
	reads := ctx
	if all {
		var err error
		if reads, err = in.anonymize(ctx, client, &to); err != nil {
			return nil, err
		}
	}
	buckets, err := in.buckets(to.Truncate(time.Microsecond))
	if err != nil {
		return nil, err
	}
	var steps []waitStep
	if err := in.starts(client, buckets).Modify(func(s *sql.Selector) { in.group(s, buckets) }).Scan(reads, &steps); err != nil {
		return nil, fmt.Errorf("sum waits: %w", err)
	}
	if len(steps) > maxSteps {
		return nil, problem.Invalid("by", "gives too many rows: choose a shorter time, fewer dimensions or a filter")
	}
	rows := percentiles(steps)
	if all {
		if rows, err = in.hide(reads, client, buckets, rows); err != nil {
			return nil, err
		}
	}
	if len(rows) > maxRows {
		return nil, problem.Invalid("by", "gives more than %d rows: choose a shorter time, fewer dimensions or a filter", maxRows).WithLimit(fmt.Sprint(maxRows))
	}
	return in.rows(ctx, client, buckets, rows)
}

// maxSteps limits the rows of the statement. A group has 900 steps for each power of ten.
const maxSteps = 1_000_000

// waitStep is the number of starts of a group that took as long as a step, which has three significant digits.
type waitStep struct {
	Keys string
	Step int64 // ms
	N    int
	Most int64 // ms
}

// anonymize checks and changes a request about the sessions of all users. Whole hours keep two requests from differing in one session.
func (in *WaitReportInput) anonymize(ctx context.Context, client *ent.Client, to *time.Time) (context.Context, error) {
	for _, d := range in.By {
		switch d {
		case WaitByResourceGroup, WaitByReason, WaitByHour, WaitByDay, WaitByWeek, WaitByMonth:
		default:
			return nil, problem.Invalid("by", "cannot have %s with everyone: use RESOURCE_GROUP, REASON or a step of time", d)
		}
	}
	for name, id := range map[string]*uuid.UUID{"user": in.User, "project": in.Project, "domain": in.Domain, "agent": in.Agent, "image": in.Image} {
		if id != nil {
			return nil, problem.Invalid(name, "cannot be used with everyone")
		}
	}
	if in.ResourceGroup == nil {
		return nil, problem.Invalid("resourceGroup", "is required with everyone")
	}
	if _, err := client.ResourceGroup.Get(ctx, *in.ResourceGroup); err != nil { // by the rules of the viewer
		return nil, err
	}
	in.From, *to, in.TimeZone = in.From.Truncate(time.Hour), to.Truncate(time.Hour), nil
	return viewer.SystemContext(ctx), nil
}

// buckets returns the steps of time.
func (in WaitReportInput) buckets(to time.Time) ([]bucket, error) {
	steps := UsageReportInput{From: in.From, TimeZone: in.TimeZone}
	for i, d := range in.By {
		if slices.Contains(in.By[:i], d) {
			return nil, problem.Invalid("by", "names %s twice", d)
		}
		if _, plain := waitColumns[d]; !plain {
			steps.By = append(steps.By, UsageDimension(d))
		}
	}
	return steps.buckets(to)
}

// starts selects the starts that the input asks for.
func (in WaitReportInput) starts(client *ent.Client, buckets []bucket) *ent.SessionStartQuery {
	q := client.SessionStart.Query().Where(sessionstart.StartedAtGTE(buckets[0].from), sessionstart.StartedAtLT(buckets[len(buckets)-1].to))
	if in.User != nil {
		q.Where(sessionstart.OwnerID(*in.User))
	}
	if in.Project != nil {
		q.Where(sessionstart.ProjectID(*in.Project))
	}
	if in.Domain != nil {
		q.Where(sessionstart.DomainID(*in.Domain))
	}
	if in.ResourceGroup != nil {
		q.Where(sessionstart.ResourceGroupID(*in.ResourceGroup))
	}
	if in.Agent != nil {
		q.Where(sessionstart.AgentID(*in.Agent))
	}
	if in.Image != nil {
		q.Where(sessionstart.ImageID(*in.Image))
	}
	if in.Stage != nil && *in.Stage == StagePull { // the starts that had to wait for the image
		q.Where(sessionstart.Path("PULLED"))
	}
	return q
}

// keys returns the expression of the values of the dimensions as a text with tabs. A step of time is the number of its bucket.
func (in WaitReportInput) keys(buckets []bucket) string {
	keys := []string{"''"}
	for _, d := range in.By {
		expr, plain := waitColumns[d]
		if !plain {
			var begins []string
			for _, b := range buckets {
				begins = append(begins, literal(b.from))
			}
			expr = "width_bucket(session_starts.started_at, ARRAY[" + strings.Join(begins, ", ") + "])"
		}
		keys = append(keys, "COALESCE(("+expr+")::text, '')")
	}
	return "concat_ws(E'\\t', " + strings.Join(keys, ", ") + ")"
}

// group makes the statement count the starts of each step of three significant digits, because that needs no sort of all starts. The
// percentile of rounded values is the rounded percentile.
func (in WaitReportInput) group(s *sql.Selector, buckets []bucket) {
	column := stageColumns[StageWait]
	if in.Stage != nil {
		column = stageColumns[*in.Stage]
	}
	step := "CASE WHEN " + column + " < 1000 THEN " + column
	for low := int64(10_000); low <= 1_000_000_000_000; low *= 10 {
		step += fmt.Sprintf(" WHEN %s < %d THEN %s / %d * %d", column, low, column, low/1000, low/1000)
	}
	step += " ELSE 1000000000000 END"
	s.Select(sql.As(in.keys(buckets), "keys"), sql.As("("+step+")", "step"), sql.As("COUNT(*)", "n"), sql.As("MAX("+column+")", "most")).
		GroupBy("keys", "step").OrderExpr(sql.Expr("keys, step")).Limit(maxSteps + 1)
}

// waitSum are the starts of one group.
type waitSum struct {
	keys string
	WaitRow
}

// percentiles turns the steps of each group, the shortest first, into its percentiles.
func percentiles(steps []waitStep) (out []waitSum) {
	for len(steps) > 0 {
		n := slices.IndexFunc(steps, func(s waitStep) bool { return s.Keys != steps[0].Keys })
		if n < 0 {
			n = len(steps)
		}
		group := steps[:n]
		steps = steps[n:]
		sum := waitSum{keys: group[0].Keys}
		most := int64(0)
		for _, s := range group {
			sum.Count += s.N
			most = max(most, s.Most)
		}
		sum.P50, sum.P90, sum.P99, sum.Max = rank(group, sum.Count, 50), rank(group, sum.Count, 90), rank(group, sum.Count, 99), seconds(most)
		out = append(out, sum)
	}
	return out
}

// rank returns the smallest step that is not exceeded by a share of the starts.
func rank(group []waitStep, count, percent int) *float64 {
	need := (count*percent + 99) / 100
	for _, s := range group {
		if need -= s.N; need <= 0 {
			return seconds(s.Step)
		}
	}
	return nil
}

func seconds(ms int64) *float64 {
	v := float64(ms) / 1000
	return &v
}

// hide removes groups of few sessions or users, and values that show a single session.
func (in WaitReportInput) hide(ctx context.Context, client *ent.Client, buckets []bucket, rows []waitSum) ([]waitSum, error) {
	var users []struct {
		Keys  string
		Users int
	}
	err := in.starts(client, buckets).Modify(func(s *sql.Selector) {
		s.Select(sql.As(in.keys(buckets), "keys"), sql.As("COUNT(DISTINCT session_starts.owner_id)", "users")).GroupBy("keys")
	}).Scan(ctx, &users)
	if err != nil {
		return nil, fmt.Errorf("count users: %w", err)
	}
	people := map[string]int{}
	for _, u := range users {
		people[u.Keys] = u.Users
	}
	var out []waitSum
	for _, r := range rows {
		if r.Count < leastSessions || people[r.keys] < leastUsers {
			continue
		}
		r.Max = nil
		if r.Count < 10*leastSessions {
			r.P90 = nil
		}
		if r.Count < 100*leastSessions {
			r.P99 = nil
		}
		out = append(out, r)
	}
	return out, nil
}

// rows adds labels.
func (in WaitReportInput) rows(ctx context.Context, client *ent.Client, buckets []bucket, sums []waitSum) ([]WaitRow, error) {
	loc := time.UTC
	if in.TimeZone != nil {
		loc, _ = time.LoadLocation(*in.TimeZone) // checked before
	}
	ids := make([]map[uuid.UUID]string, len(in.By))
	out := make([]WaitRow, 0, len(sums))
	for _, sum := range sums {
		row := sum.WaitRow
		row.Keys = []WaitKey{}
		for i, value := range strings.Split(sum.keys, "\t")[1:] {
			key := WaitKey{Dimension: in.By[i], Value: value, Label: value}
			if id, err := uuid.Parse(value); err == nil {
				if ids[i] == nil {
					ids[i] = map[uuid.UUID]string{}
				}
				ids[i][id] = ""
			} else if _, plain := waitColumns[key.Dimension]; !plain {
				n, _ := strconv.Atoi(value) // from our own statement
				at := buckets[n-1].from.In(loc)
				key.Value, key.Label = at.UTC().Format(time.RFC3339), at.Format(layouts[UsageDimension(key.Dimension)])
			}
			row.Keys = append(row.Keys, key)
		}
		out = append(out, row)
	}
	for i, set := range ids {
		if err := label(ctx, client, UsageDimension(in.By[i]), set); err != nil {
			return nil, err
		}
	}
	for _, row := range out {
		for i := range row.Keys {
			if id, err := uuid.Parse(row.Keys[i].Value); err == nil {
				row.Keys[i].Label = ids[i][id]
			}
		}
	}
	return out, nil
}
