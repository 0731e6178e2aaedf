package manager

import (
	"context"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/manager/attach"
	"github.com/berthhq/berth/manager/sessionfile"
	"github.com/berthhq/berth/manager/targets"
)

// ownRole is the role of a manager in the metrics that all roles have.
const ownRole = "manager"

// errUnled reports that etcd answers and no manager leads.
var errUnled = errors.New("no manager leads")

// Checks returns the dependencies of a manager, in the order of /readyz.
func (m *Manager) Checks() []opsserver.Check {
	return []opsserver.Check{
		{Name: "postgresql", Probe: m.db.PingContext},
		{Name: "redis", Optional: true, Probe: func(ctx context.Context) error { return m.redis.Ping(ctx).Err() }}, // it contains only data that can be lost
		{Name: "etcd", Probe: m.pingEtcd},
		// Optional, because a manager serves users without a leader too.
		{Name: "leader", Optional: true, Probe: m.pingLeader, Word: func(err error) string {
			if errors.Is(err, errUnled) {
				return "none"
			}
			return "unknown"
		}},
	}
}

func (m *Manager) pingEtcd(ctx context.Context) error {
	_, err := m.etcd.Get(ctx, "/berth/leader")
	return err
}

func (m *Manager) pingLeader(ctx context.Context) error {
	l, err := m.leader.Current(ctx)
	if err == nil && l == nil {
		return errUnled
	}
	return err
}

// meter returns the registerer of the parts' metrics, or nil.
func (m *Manager) meter() prometheus.Registerer {
	if m.cfg.Registry == nil {
		return nil
	}
	return m.cfg.Registry
}

// measure registers the metrics that no part of the manager registers itself.
func (m *Manager) measure() {
	to := m.meter()
	of := newRowMetrics(to)
	m.rows = newRowGauges(to, func(ctx context.Context) error { return m.countRows(ctx, of) })
	m.requests, m.attached, m.files = newRequests(to), attach.NewOpen(to), sessionfile.NewMetrics(to)
	m.watcher = opsserver.NewWatcher(ownRole, m.Checks(), to, m.log)
	m.hub.Measure(to)
	cluster.MeasureCertificate(to, ownRole, "ca", m.ca.Expires)
}

// Metrics returns the metrics of this manager. Metrics from rows are read when a client
// gathers, at most every few seconds and with a time limit.
func (m *Manager) Metrics() prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		m.rows.refresh()
		return m.cfg.Registry.Gather()
	})
}

// gatherer returns the metrics that other managers can read, or nil.
func (m *Manager) gatherer() prometheus.Gatherer {
	if m.cfg.Registry == nil {
		return nil
	}
	return m.Metrics()
}

// targets returns the service that shows the metrics of every role to the monitoring.
func (m *Manager) targets(own http.Handler) *targets.Service {
	return targets.New(targets.Config{
		Client: m.client, Peer: m.hub.Peer, Managers: m.addresses, Read: m.ca.Metrics, Own: m.ClusterAddress(), OwnMetrics: own,
		Gateways: func() []string {
			list := []string{}
			for _, g := range m.liveGateways() {
				list = append(list, g.Address)
			}
			return list
		},
		Allow: m.forScraping, Logger: m.log,
	})
}
