package waste

import (
	"context"
	"fmt"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionuse"
	"github.com/berthhq/berth/internal/lifecycle"
)

// settled is how long a session must be measured before it is in a report about its use.
const settled = 10 * time.Minute

// slotUnit is the SQL of the amount of one unit of a slot: shares have thousandths.
const slotUnit = `(CASE WHEN (SELECT t.kind FROM slot_types t WHERE t.name = %[1]s) = 'shares' THEN 1000.0 ELSE 1.0 END)`

func unit(column string) string { return fmt.Sprintf(slotUnit, column) }

// columns selects what found has. Missing columns are null.
func columns(s *sql.Selector, values map[string]string) {
	var list []string
	for _, c := range []struct{ name, none string }{
		{"session", "NULL::uuid"}, {"owner", "NULL::uuid"}, {"agent", "NULL::uuid"}, {"name", "NULL::text"}, {"slot", "NULL::text"},
		{"quality", "NULL::text"}, {"n1", "NULL::float8"}, {"n2", "NULL::float8"}, {"n3", "NULL::float8"}, {"n4", "NULL::float8"},
	} {
		expr := c.none
		if v, ok := values[c.name]; ok {
			expr = v
			if strings.HasPrefix(c.name, "n") && c.name != "name" {
				expr = "(" + v + ")::float8"
			}
		}
		list = append(list, sql.As("("+expr+")", c.name)) // without parentheses, it would be quoted as the name of a column
	}
	s.Select(list...)
}

// ofSession are the columns of rows about sessions, on a row of session_uses.
func ofSession(more map[string]string) map[string]string {
	more["session"], more["owner"] = "session_uses.session_id", "session_uses.owner_id"
	more["name"] = "(SELECT s.name FROM sessions s WHERE s.id = session_uses.session_id)"
	more["slot"], more["quality"] = "session_uses.slot", "session_uses.quality"
	return more
}

const (
	askedSlots = "(SELECT (s.slots ->> session_uses.slot)::float8 FROM sessions s WHERE s.id = session_uses.session_id)"
	ranFor     = "EXTRACT(EPOCH FROM (SELECT now() - s.started_at FROM sessions s WHERE s.id = session_uses.session_id))"
	// isRunning limits rows to running sessions.
	isRunning = "EXISTS (SELECT FROM sessions s WHERE s.id = session_uses.session_id AND s.terminated_at IS NULL AND s.status = 'running')"
)

// unusedAccelerators: at most 1 % of one device over at least ten minutes. Accelerators without measurements follow, as unknown.
func unusedAccelerators(ctx context.Context, client *ent.Client, _, _ time.Time, limit int) (out []found, err error) {
	err = client.SessionUse.Query().Where(sessionuse.Final(false), sessionuse.MetricHasSuffix("_util"), sessionuse.MetricNEQ("cpu_util")).
		Modify(func(s *sql.Selector) {
			s.Where(sql.ExprP(isRunning + fmt.Sprintf(" AND (session_uses.quality = 'unknown' OR session_uses.p95 < 1 AND session_uses.seconds >= %d)", int(settled.Seconds()))))
			columns(s, ofSession(map[string]string{"n1": askedSlots, "n2": "session_uses.mean", "n3": "session_uses.seconds", "n4": ranFor}))
			s.OrderExpr(sql.Expr("(session_uses.quality = 'unknown'), session_uses.seconds DESC")).Limit(limit)
		}).Scan(ctx, &out)
	return out, err
}

// memoryAboveNeed: at least 1 GiB and less than a quarter of it reached.
func memoryAboveNeed(ctx context.Context, client *ent.Client, _, _ time.Time, limit int) (out []found, err error) {
	err = client.SessionUse.Query().Where(sessionuse.Final(false), sessionuse.Metric("mem_used"), sessionuse.QualityNEQ(sessionuse.QualityUnknown), sessionuse.AskedGTE(1<<30)).
		Modify(func(s *sql.Selector) {
			s.Where(sql.ExprP(isRunning + fmt.Sprintf(" AND session_uses.peak < 0.25 * session_uses.asked AND session_uses.seconds >= %d", int(settled.Seconds()))))
			columns(s, ofSession(map[string]string{"n1": "session_uses.asked", "n2": "session_uses.peak", "n3": "session_uses.suggested", "n4": ranFor}))
			s.OrderExpr(sql.Expr("session_uses.asked - session_uses.peak DESC")).Limit(limit)
		}).Scan(ctx, &out)
	return out, err
}

// smallerDevice: the suggestion is at most half of the request. It respects the memory of the accelerator, so a session that fills the
// memory and computes little is not part of it.
func smallerDevice(ctx context.Context, client *ent.Client, _, _ time.Time, limit int) (out []found, err error) {
	err = client.SessionUse.Query().Where(sessionuse.Final(false), sessionuse.MetricHasSuffix("_util"), sessionuse.MetricNEQ("cpu_util"), sessionuse.SuggestedNotNil()).
		Modify(func(s *sql.Selector) {
			suggested := "session_uses.suggested / " + unit("session_uses.slot")
			s.Where(sql.ExprP(isRunning + " AND " + suggested + " <= 0.5 * " + askedSlots))
			columns(s, ofSession(map[string]string{"n1": askedSlots, "n2": suggested, "n3": "session_uses.p95", "n4": ranFor}))
			s.OrderExpr(sql.Expr(askedSlots + " - " + suggested + " DESC")).Limit(limit)
		}).Scan(ctx, &out)
	return out, err
}

// longestWaits: from the place in the queue.
func longestWaits(ctx context.Context, client *ent.Client, _, _ time.Time, limit int) (out []found, err error) {
	err = client.Session.Query().Where(session.TerminatedAtIsNil(), session.StatusEQ(lifecycle.Pending)).
		Modify(func(s *sql.Selector) {
			since := "EXTRACT(EPOCH FROM now() - GREATEST(sessions.created_at, sessions.starts_at))"
			s.Where(sql.ExprP("(sessions.starts_at IS NULL OR sessions.starts_at <= now())"))
			columns(s, map[string]string{"session": "sessions.id", "owner": "sessions.owner_id", "name": "sessions.name", "n1": since})
			s.OrderExpr(sql.Expr(since + " DESC")).Limit(limit)
		}).Scan(ctx, &out)
	return out, err
}
