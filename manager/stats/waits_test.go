package stats_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/starts"
	"github.com/berthhq/berth/manager/stats"
)

var monday = time.Date(2026, 3, 23, 0, 0, 0, 0, time.UTC)

// queue is a world with sessions that waited.
type queue struct {
	*identitytest.World
	t     testing.TB
	group *ent.ResourceGroup
	image *ent.Image
	n     int
}

func newQueue(t testing.TB) *queue {
	q := &queue{World: identitytest.New(t), t: t}
	ctx := q.As(t, q.Superadmin)
	q.group = q.Client.ResourceGroup.Create().SetName("g").SetPublic(true).SaveX(ctx)
	reg := q.Client.Registry.Create().SetName("r").SetHost("r.test").SaveX(ctx)
	q.image = q.Client.Image.Create().SetReference("r.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(ctx)
	return q
}

// waited adds a session of a user that waited some seconds for capacity, with its history.
func (q *queue) waited(u *ent.User, d identitytest.Domain, seconds int) *ent.Session {
	q.t.Helper()
	ctx, c := q.As(q.t, q.Superadmin), q.Client
	q.n++
	s := c.Session.Create().SetName(fmt.Sprint("s", q.n)).SetType("batch").SetStatus(lifecycle.Running).SetSlots(resource.Slots{}).SetCreatedAt(monday).
		SetDomainID(d.ID).SetProject(d.Project).SetOwner(u).SetResourceGroup(q.group).SetImage(q.image).SaveX(ctx)
	at := func(sec int, from, to lifecycle.Status, code string) {
		c.SessionEvent.Create().SetSession(s).SetAt(monday.Add(time.Duration(sec) * time.Second)).SetPhase("p").SetFromStatus(from).SetToStatus(to).SetResult("success").SetCode(code).ExecX(ctx)
	}
	at(0, lifecycle.Pending, lifecycle.Pending, "waiting:room")
	at(seconds-1, lifecycle.Pending, lifecycle.Scheduled, "")
	at(seconds-1, lifecycle.Scheduled, lifecycle.Creating, "")
	at(seconds, lifecycle.Creating, lifecycle.Running, "")
	return s
}

func (q *queue) report(ctx context.Context, in stats.WaitReportInput) []stats.WaitRow {
	q.t.Helper()
	in.From = monday
	to := monday.Add(24 * time.Hour)
	in.To = &to
	rows, err := stats.Waits(ctx, q.Client, in)
	if err != nil {
		q.t.Fatal(err)
	}
	return rows
}

func collect(t *testing.T, q *queue) {
	t.Helper()
	s := starts.New(starts.Config{Client: q.Client, Logger: slog.New(slog.DiscardHandler)})
	for range 2 { // the second time, and a second leader, change nothing
		if err := s.Collect(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		s = starts.New(starts.Config{Client: q.Client, Logger: slog.New(slog.DiscardHandler)})
	}
}

// The starts of the history are stored once, and their percentiles are those of the nearest rank.
func TestWaits(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for i := range 100 {
		u := []*ent.User{q.A.Member, q.A.Lead}[i%2]
		q.waited(u, q.A, 10+i)
	}
	q.waited(q.B.Member, q.B, 5000)
	collect(t, q)
	all := q.report(q.As(t, q.Superadmin), stats.WaitReportInput{})
	if len(all) != 1 || all[0].Count != 101 || *all[0].P50 != 60 || *all[0].P90 != 100 || *all[0].P99 != 109 || *all[0].Max != 5000 {
		t.Fatalf("%+v", all)
	}
	for name, tt := range map[string]struct {
		as   *ent.User
		want int
	}{"own": {q.A.Member, 50}, "of the project": {q.A.Lead, 100}, "of the domain": {q.B.Admin, 1}, "none": {q.B.Loner, 0}} {
		n := 0
		for _, r := range q.report(q.As(t, tt.as), stats.WaitReportInput{By: []stats.WaitDimension{"USER", stats.WaitByReason, "HOUR"}}) {
			n += r.Count
			if r.Keys[1].Value != string(starts.Room) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if n != tt.want {
			t.Errorf("%s: %d starts, want %d", name, n, tt.want)
		}
	}
	create := stats.StageCreate
	if got := q.report(q.As(t, q.Superadmin), stats.WaitReportInput{Stage: &create}); *got[0].P50 != 1 {
		t.Errorf("%+v", got)
	}
	pull := stats.StagePull
	if got := q.report(q.As(t, q.Superadmin), stats.WaitReportInput{Stage: &pull}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// A user sees the waits of others only together with those of at least two more users.
func TestWaitsOfEveryone(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	yes, ctx := true, q.As(t, q.B.Loner)
	in := stats.WaitReportInput{Everyone: &yes, ResourceGroup: &q.group.ID}
	for i := range 6 {
		q.waited([]*ent.User{q.A.Member, q.A.Lead}[i%2], q.A, 10+i)
	}
	collect(t, q)
	if got := q.report(ctx, in); len(got) != 0 {
		t.Errorf("sessions of two users are shown: %+v", got)
	}
	q.waited(q.B.Member, q.B, 40)
	collect(t, q)
	got := q.report(ctx, in)
	if len(got) != 1 || got[0].Count != 7 || *got[0].P50 != 13 || got[0].P90 != nil || got[0].P99 != nil || got[0].Max != nil {
		t.Fatalf("%+v", got)
	}
	for field, change := range map[string]func(*stats.WaitReportInput){
		"by":            func(in *stats.WaitReportInput) { in.By = []stats.WaitDimension{"USER"} },
		"user":          func(in *stats.WaitReportInput) { in.User = &q.A.Member.ID },
		"project":       func(in *stats.WaitReportInput) { in.Project = &q.A.Project.ID },
		"resourceGroup": func(in *stats.WaitReportInput) { in.ResourceGroup = nil },
	} {
		in, to := in, monday.Add(24*time.Hour)
		in.From, in.To = monday, &to
		change(&in)
		if _, err := stats.Waits(ctx, q.Client, in); fieldOf(err) != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	private := q.Client.ResourceGroup.Create().SetName("private").SetPublic(false).SaveX(q.As(t, q.Superadmin))
	in.From, in.ResourceGroup = monday, &private.ID
	if _, err := stats.Waits(ctx, q.Client, in); !ent.IsNotFound(err) {
		t.Errorf("a group that the viewer cannot use: %v", err)
	}
}

// A million starts of a month: go test -run none -bench Waits ./manager/stats
func BenchmarkWaits(b *testing.B) {
	q := newQueue(b)
	ctx := q.As(b, q.Superadmin)
	for from := 0; from < 1_000_000; from += 100_000 {
		_, err := q.Client.ExecContext(ctx, `INSERT INTO session_starts (id, domain_id, project_id, owner_id, session_id, resource_group_id, image_id, session_type, reason, path, started_at, wait_ms, queue_ms, pull_ms, create_ms)
SELECT gen_random_uuid(), $1, $2, $3, gen_random_uuid(), $4, $5, 'batch', (ARRAY['NONE', 'ROOM', 'LIMITS'])[1 + n % 3], 'PRESENT', $6::timestamptz + n * interval '2.5 s', w + 2000, w, 0, 2000
FROM (SELECT n, (exp(random() * 14))::bigint AS w FROM generate_series($7::int + 1, $7::int + 100000) n) x`, q.A.ID, q.A.Project.ID, q.A.Member.ID, q.group.ID, q.image.ID, monday, from)
		if err != nil {
			b.Fatal(err)
		}
	}
	if _, err := q.Client.ExecContext(ctx, `ANALYZE session_starts`); err != nil {
		b.Fatal(err)
	}
	to := monday.AddDate(0, 1, 0)
	for name, by := range map[string][]stats.WaitDimension{"all": nil, "reason": {stats.WaitByReason}, "day": {"DAY"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				rows, err := stats.Waits(ctx, q.Client, stats.WaitReportInput{From: monday, To: &to, By: by})
				if n := 0; err != nil || !slices.ContainsFunc(rows, func(r stats.WaitRow) bool { n += r.Count; return n == 1_000_000 }) {
					b.Fatal(len(rows), n, err)
				}
			}
		})
	}
}
