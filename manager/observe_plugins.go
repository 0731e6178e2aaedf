package manager

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
)

// pluginGauges are how the accelerator plugins of all agents are.
type pluginGauges struct{ up, checks *prometheus.GaugeVec }

func newPluginGauges(r prometheus.Registerer) pluginGauges {
	f := promauto.With(r)
	return pluginGauges{
		up: f.NewGaugeVec(prometheus.GaugeOpts{Name: "berth_plugin_up",
			Help: "Whether an accelerator plugin runs and sees all of its hardware."}, []string{"agent", "plugin"}),
		checks: f.NewGaugeVec(prometheus.GaugeOpts{Name: "berth_plugin_failed_checks",
			Help: "Checks of an accelerator plugin's preflight that failed, by level."}, []string{"agent", "plugin", "level"}),
	}
}

// countPlugins refreshes the gauges from what agents reported last.
func (m *Manager) countPlugins(ctx context.Context, g pluginGauges) {
	list, err := m.client.Agent.Query().Where(agent.StatusEQ(agent.StatusAlive)).
		Select(agent.FieldName, agent.FieldPlugins).All(viewer.SystemContext(ctx))
	if err != nil {
		return
	}
	g.up.Reset()
	g.checks.Reset()
	for _, a := range list {
		for _, p := range a.Plugins {
			up := 0.0
			if p.State == "running" && p.Message == "" {
				up = 1
			}
			g.up.WithLabelValues(a.Name, p.Name).Set(up)
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
	}
}
