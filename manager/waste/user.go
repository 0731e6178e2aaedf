package waste

import (
	"context"
	"time"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionuse"
)

// lowUse: below 15 % of what was measured since a time.
func lowUse(ctx context.Context, client *ent.Client, from, _ time.Time, limit int) (out []found, err error) {
	err = client.SessionUse.Query().Where(sessionuse.UpdatedAtGTE(from), sessionuse.MetricHasSuffix("_util"), sessionuse.MetricNEQ("cpu_util"),
		sessionuse.QualityNEQ(sessionuse.QualityUnknown), sessionuse.AskedGT(0), sessionuse.SlotNEQ("")).
		Modify(func(s *sql.Selector) {
			total := "SUM(" + askedSlots + " * session_uses.seconds)"
			share := "100 * SUM(session_uses.mean / session_uses.asked * " + askedSlots + " * session_uses.seconds) / NULLIF(" + total + ", 0)"
			columns(s, map[string]string{"owner": "session_uses.owner_id", "slot": "session_uses.slot", "n1": total, "n2": share, "n3": "COUNT(*)"})
			s.GroupBy(s.C("owner_id"), s.C("slot")).Having(sql.ExprP(share + " < 15")).OrderExpr(sql.Expr("n1 DESC")).Limit(limit)
		}).Scan(ctx, &out)
	return out, err
}

// unusedMemory: what was allocated and never reached, while it was measured.
func unusedMemory(ctx context.Context, client *ent.Client, from, _ time.Time, limit int) (out []found, err error) {
	err = client.SessionUse.Query().Where(sessionuse.UpdatedAtGTE(from), sessionuse.Metric("mem_used"), sessionuse.QualityNEQ(sessionuse.QualityUnknown), sessionuse.AskedGT(0)).
		Modify(func(s *sql.Selector) {
			unused := "SUM(GREATEST(0, session_uses.asked - session_uses.peak) * session_uses.seconds)"
			columns(s, map[string]string{"owner": "session_uses.owner_id", "slot": "'mem'", "n1": "SUM(session_uses.asked * session_uses.seconds)", "n2": unused, "n3": "COUNT(*)"})
			s.GroupBy(s.C("owner_id")).OrderExpr(sql.Expr("n2 DESC")).Limit(limit)
		}).Scan(ctx, &out)
	return out, err
}

// longLimits: at least three sessions that ended by themselves in a quarter of their lifetime.
func longLimits(ctx context.Context, client *ent.Client, from, _ time.Time, limit int) (out []found, err error) {
	err = client.Session.Query().Where(session.CreatedAtGTE(from), session.LifetimeNotNil(), session.StartedAtNotNil(), session.TerminatedAtNotNil(),
		session.TerminationReasonEQ(session.TerminationReasonCompleted)).
		Modify(func(s *sql.Selector) {
			ran := "AVG(EXTRACT(EPOCH FROM sessions.terminated_at - sessions.started_at))"
			columns(s, map[string]string{"owner": "sessions.owner_id", "n1": "COUNT(*)", "n2": "AVG(sessions.lifetime)", "n3": ran})
			s.GroupBy(s.C("owner_id")).Having(sql.ExprP("COUNT(*) >= 3 AND " + ran + " < 0.25 * AVG(sessions.lifetime)")).OrderExpr(sql.Expr("n1 DESC")).Limit(limit)
		}).Scan(ctx, &out)
	return out, err
}

// mostSlots: cores and devices that are allocated now.
func mostSlots(ctx context.Context, client *ent.Client, _, _ time.Time, limit int) (out []found, err error) {
	err = client.Allocation.Query().Where(allocation.FreedAtIsNil(), allocation.SlotNEQ("mem")).
		Modify(func(s *sql.Selector) {
			columns(s, map[string]string{"owner": "allocations.owner_id", "slot": "allocations.slot",
				"n1": "SUM(allocations.amount) / " + unit("allocations.slot"), "n2": "COUNT(DISTINCT allocations.session_id)"})
			s.GroupBy(s.C("owner_id"), s.C("slot")).OrderExpr(sql.Expr("(allocations.slot = 'cpu'), n1 DESC")).Limit(limit)
		}).Scan(ctx, &out)
	return out, err
}

// fragmentation: sessions whose devices of one slot are on several machines, though one machine has as many.
func fragmentation(ctx context.Context, client *ent.Client, _, _ time.Time, limit int) (out []found, err error) {
	err = client.Allocation.Query().Where(allocation.FreedAtIsNil(), allocation.SlotNotIn("mem", "cpu")).
		Modify(func(s *sql.Selector) {
			// The largest amount of the slot on a machine of those that the session uses.
			largest := `(SELECT MAX(c.total) FROM (SELECT SUM((d.capacity ->> allocations.slot)::float8) AS total FROM devices d
  WHERE d.agent_id IN (SELECT o.agent_id FROM allocations o WHERE o.session_id = allocations.session_id AND o.freed_at IS NULL) GROUP BY d.agent_id) c)`
			amount := "SUM(allocations.amount) / " + unit("allocations.slot")
			columns(s, map[string]string{"session": "allocations.session_id", "owner": "allocations.owner_id", "slot": "allocations.slot",
				"name": "(SELECT s.name FROM sessions s WHERE s.id = allocations.session_id)",
				"n1":   "COUNT(DISTINCT allocations.agent_id)", "n2": amount, "n3": largest})
			s.GroupBy(s.C("session_id"), s.C("owner_id"), s.C("slot")).
				Having(sql.ExprP("COUNT(DISTINCT allocations.agent_id) > 1 AND " + amount + " <= " + largest)).OrderExpr(sql.Expr("n1 DESC")).Limit(limit)
		}).Scan(ctx, &out)
	return out, err
}

// unusedMachines: schedulable machines without an allocation, since the last one or since they joined.
func unusedMachines(ctx context.Context, client *ent.Client, _, _ time.Time, limit int) (out []found, err error) {
	err = client.Agent.Query().Where(agent.StatusEQ(agent.StatusAlive), agent.Schedulable(true)).
		Modify(func(s *sql.Selector) {
			s.Where(sql.ExprP("NOT EXISTS (SELECT FROM allocations a WHERE a.agent_id = agents.id AND a.freed_at IS NULL)"))
			last := "(SELECT MAX(k.terminated_at) FROM kernels k WHERE k.agent_id = agents.id)"
			columns(s, map[string]string{"agent": "agents.id", "n1": "EXTRACT(EPOCH FROM now() - COALESCE(" + last + ", agents.first_seen_at))",
				"n2": "(SELECT COUNT(*) FROM devices d WHERE d.agent_id = agents.id)"})
			s.OrderExpr(sql.Expr("n1 DESC")).Limit(limit)
		}).Scan(ctx, &out)
	return out, err
}
