package manager

import (
	"context"
	"errors"
	"fmt"
	"math"

	"entgo.io/ent/dialect/sql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
)

// rowMetrics are the metrics that every manager reads from the same rows, so that all managers
// report the same values.
type rowMetrics struct {
	sessions, pending, oldest   *prometheus.GaugeVec
	deployments, replicas       *prometheus.GaugeVec
	agents, heartbeat           *prometheus.GaugeVec
	plugins, checks, conditions *prometheus.GaugeVec
	capacity, allocated         *prometheus.GaugeVec
	stopped, recovery           prometheus.Gauge
}

func newRowMetrics(r prometheus.Registerer) *rowMetrics {
	f := promauto.With(r)
	vec := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	return &rowMetrics{
		sessions:    vec("berth_sessions", "Sessions that have not ended, by status.", "status"),
		deployments: vec("berth_deployments", "Deployments that have not ended, by status.", "status"),
		replicas:    vec("berth_deployment_replicas", "Replicas of deployments that have not ended, by phase.", "phase"),
		pending:     vec("berth_pending_sessions", "Sessions that wait, by resource group.", "resource_group"),
		oldest:      vec("berth_pending_oldest_age_seconds", "Age of the oldest session that waits in a resource group; 0 without one.", "resource_group"),
		agents:      vec("berth_agents", "Agents by status.", "status"),
		heartbeat:   vec("berth_agent_heartbeat_age_seconds", "Age of the oldest last heartbeat of the agents of a status; 0 without one.", "status"),
		plugins:     vec("berth_plugin_up", "Whether an accelerator plugin runs and sees all of its hardware.", "agent", "plugin"),
		checks:      vec("berth_plugin_failed_checks", "Checks of an accelerator plugin's preflight that failed, by level.", "agent", "plugin", "level"),
		conditions:  vec("berth_agent_condition", "1 while a condition of an agent's machine keeps new sessions away, else 0.", "agent", "condition"),
		capacity:    vec("berth_slot_capacity", "Capacity of a slot on the live agents of a resource group: cores, bytes, devices or shares.", "resource_group", "slot"),
		allocated:   vec("berth_slot_allocated", "Amount of a slot that is allocated to sessions in a resource group, in the unit of berth_slot_capacity.", "resource_group", "slot"),
		stopped: f.NewGauge(prometheus.GaugeOpts{
			Name: "berth_evictions_stopped", Help: "Resource groups where sessions do not end for lost agents, because too many agents are unreachable at once.",
		}),
		recovery: f.NewGauge(prometheus.GaugeOpts{
			Name: "berth_recovery_mode", Help: "1 while the cluster is in recovery mode, where no session starts and none is ended, else 0.",
		}),
	}
}

// countRows reads all of them.
func (m *Manager) countRows(ctx context.Context, g *rowMetrics) error {
	ctx = viewer.SystemContext(ctx)
	list, err := m.core.Agents.Disruptions(ctx)
	if err == nil {
		g.stopped.Set(float64(len(list)))
	}
	on, unread := m.recovery.On(ctx)
	if unread == nil {
		g.recovery.Set(holds(on))
	}
	return errors.Join(err, unread, m.countSessions(ctx, g), m.countDeployments(ctx, g), m.countQueues(ctx, g), m.countAgents(ctx, g), m.countMachines(ctx, g), m.countSlots(ctx, g))
}

// each calls row for every row of a statement.
func (m *Manager) each(ctx context.Context, what, query string, args []any, row func(*sql.Rows) error) error {
	found, err := m.client.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer found.Close()
	rows := &sql.Rows{ColumnScanner: found}
	for rows.Next() {
		if err := row(rows); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return rows.Err()
}

func (m *Manager) countSessions(ctx context.Context, g *rowMetrics) error {
	count := map[lifecycle.Status]float64{}
	err := m.each(ctx, "count sessions", `SELECT status, count(*) FROM sessions WHERE terminated_at IS NULL GROUP BY 1`, nil, func(r *sql.Rows) error {
		var status lifecycle.Status
		var n float64
		err := r.Scan(&status, &n)
		count[status] = n
		return err
	})
	if err != nil {
		return err
	}
	for _, status := range lifecycle.All {
		if !status.Final() {
			g.sessions.WithLabelValues(string(status)).Set(count[status])
		}
	}
	return nil
}

// countDeployments lists every status and every phase of what has not ended, also with 0.
func (m *Manager) countDeployments(ctx context.Context, g *rowMetrics) error {
	for _, x := range []struct {
		query string
		to    *prometheus.GaugeVec
		names []string
	}{
		{`SELECT status, count(*) FROM deployments WHERE ended_at IS NULL GROUP BY 1`, g.deployments,
			[]string{"starting", "serving", "updating", "degraded", "asleep", "ending"}},
		{`SELECT phase, count(*) FROM deployment_replicas WHERE ended_at IS NULL GROUP BY 1`, g.replicas,
			[]string{"starting", "ready", "draining", "ending"}},
	} {
		count := map[string]float64{}
		err := m.each(ctx, "count deployments", x.query, nil, func(r *sql.Rows) error {
			var name string
			var n float64
			err := r.Scan(&name, &n)
			count[name] = n
			return err
		})
		if err != nil {
			return err
		}
		for _, name := range x.names {
			x.to.WithLabelValues(name).Set(count[name])
		}
	}
	return nil
}

func (m *Manager) countQueues(ctx context.Context, g *rowMetrics) error {
	type queue struct {
		group string
		n     float64
		age   float64
	}
	var all []queue
	err := m.each(ctx, "count waiting sessions", `SELECT g.name, count(s.id), coalesce(extract(epoch FROM $1::timestamptz - min(s.created_at)), 0)::double precision
FROM resource_groups g LEFT JOIN sessions s ON s.resource_group_id = g.id AND s.status = 'pending' AND s.terminated_at IS NULL GROUP BY 1`,
		[]any{clock.Now()}, func(r *sql.Rows) error {
			var q queue
			err := r.Scan(&q.group, &q.n, &q.age)
			all = append(all, q)
			return err
		})
	if err != nil {
		return err
	}
	g.pending.Reset()
	g.oldest.Reset()
	for _, q := range all {
		g.pending.WithLabelValues(q.group).Set(q.n)
		g.oldest.WithLabelValues(q.group).Set(math.Max(q.age, 0))
	}
	return nil
}

func (m *Manager) countAgents(ctx context.Context, g *rowMetrics) error {
	for _, status := range []agent.Status{agent.StatusAlive, agent.StatusLost} {
		err := m.each(ctx, "count agents", `SELECT count(*), coalesce(extract(epoch FROM $1::timestamptz - min(last_seen_at)), 0)::double precision
FROM agents WHERE status = $2`, []any{clock.Now(), string(status)}, func(r *sql.Rows) error {
			var n, age float64
			if err := r.Scan(&n, &age); err != nil {
				return err
			}
			g.agents.WithLabelValues(string(status)).Set(n)
			g.heartbeat.WithLabelValues(string(status)).Set(math.Max(age, 0))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// countMachines sets the metrics from the latest reports of agents about plugins and machines.
func (m *Manager) countMachines(ctx context.Context, g *rowMetrics) error {
	list, err := m.client.Agent.Query().Where(agent.StatusEQ(agent.StatusAlive)).
		Select(agent.FieldName, agent.FieldPlugins, agent.FieldConditions).All(ctx)
	if err != nil {
		return fmt.Errorf("read the machines of agents: %w", err)
	}
	g.plugins.Reset()
	g.checks.Reset()
	g.conditions.Reset()
	for _, a := range list {
		for _, p := range a.Plugins {
			g.plugins.WithLabelValues(a.Name, p.Name).Set(holds(p.State == "running" && p.Message == ""))
			failed := map[report.PluginCheckLevel]int{report.CheckWarning: 0, report.CheckError: 0}
			for _, c := range p.Checks {
				if c.Level != report.CheckOK {
					failed[c.Level]++
				}
			}
			for level, n := range failed {
				g.checks.WithLabelValues(a.Name, p.Name, string(level)).Set(float64(n))
			}
		}
		for _, c := range a.Conditions {
			g.conditions.WithLabelValues(a.Name, c.Type).Set(holds(c.Status))
		}
	}
	return nil
}

func holds(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// share is a slot in a resource group.
type share struct{ group, slot string }

// countSlots sets the capacity and the allocated amount of slots, 0 for slots without
// allocations.
func (m *Manager) countSlots(ctx context.Context, g *rowMetrics) error {
	capacity, err := m.sumSlots(ctx, `SELECT g.name, c.key, sum(c.value::double precision) FROM devices d JOIN agents a ON a.id = d.agent_id
JOIN resource_groups g ON g.id = a.resource_group_id, jsonb_each_text(d.capacity) c WHERE a.status = 'alive' AND d.allocatable GROUP BY 1, 2`)
	if err != nil {
		return err
	}
	held, err := m.sumSlots(ctx, `SELECT g.name, al.slot, sum(al.amount)::double precision FROM allocations al JOIN agents a ON a.id = al.agent_id
JOIN resource_groups g ON g.id = a.resource_group_id WHERE al.freed_at IS NULL GROUP BY 1, 2`)
	if err != nil {
		return err
	}
	g.capacity.Reset()
	g.allocated.Reset()
	for s, amount := range capacity {
		g.capacity.WithLabelValues(s.group, s.slot).Set(amount)
		g.allocated.WithLabelValues(s.group, s.slot).Set(0)
	}
	for s, amount := range held { // rows have thousandths for slots with fractions
		g.allocated.WithLabelValues(s.group, s.slot).Set(amount / math.Pow10(resource.Scale(s.slot)))
	}
	return nil
}

func (m *Manager) sumSlots(ctx context.Context, query string) (map[share]float64, error) {
	all := map[share]float64{}
	return all, m.each(ctx, "sum slots", query, nil, func(r *sql.Rows) error {
		var s share
		var amount float64
		err := r.Scan(&s.group, &s.slot, &amount)
		all[s] = amount
		return err
	})
}
