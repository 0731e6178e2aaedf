package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/internal/opsserver"
)

// registries are the metrics of the roles of berthd up. Each role has its own, so that a monitoring system that reads every
// role through the manager gets each metric once. That of the manager also has the metrics of the process.
type registries struct {
	manager, gateway, storage, agent *prometheus.Registry
}

func newRegistries() registries {
	return registries{
		manager: opsserver.NewRegistry(version, "manager", "gateway", "storage", "agent"),
		gateway: prometheus.NewRegistry(), storage: prometheus.NewRegistry(), agent: prometheus.NewRegistry(),
	}
}

// all returns the metrics of all roles; of are those of the manager.
func (r registries) all(of prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.Gatherers{of, r.gateway, r.storage, r.agent}
}
