package opsserver

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// NewRegistry returns a registry with the metrics that every process has: those of the Go runtime,
// of the process, and the version and the roles of the program.
func NewRegistry(version string, roles ...string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info := promauto.With(r).NewGaugeVec(prometheus.GaugeOpts{
		Name: "berth_build_info", Help: "Always 1; the labels have the version and the roles.",
	}, []string{"role", "version", "go_version"})
	for _, role := range roles {
		info.WithLabelValues(role, version, runtime.Version()).Set(1)
	}
	return r
}
