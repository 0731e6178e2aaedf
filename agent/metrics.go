package agent

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/agent/layers"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/pluginhost"
	"github.com/berthhq/berth/internal/report"
)

// meter counts and times the agent's work for managers.
type meter struct {
	pulls   *prometheus.CounterVec
	pulling prometheus.Gauge
	pull    prometheus.Histogram
	streams *prometheus.GaugeVec
	layers  *layers.Meter

	removed      prometheus.Counter
	removedBytes prometheus.Counter

	commits     *prometheus.CounterVec
	commitBytes prometheus.Counter
	commit      prometheus.Histogram
	commitPause prometheus.Histogram

	builds     *prometheus.CounterVec
	buildSteps *prometheus.CounterVec
	buildBytes prometheus.Counter
	build      prometheus.Histogram
}

func newMeter(to prometheus.Registerer) *meter {
	f := promauto.With(to)
	m := &meter{
		pulls:   f.NewCounterVec(prometheus.CounterOpts{Name: "berth_agent_image_pulls_total", Help: "Pulls of images that ended, by result."}, []string{"result"}),
		pulling: f.NewGauge(prometheus.GaugeOpts{Name: "berth_agent_image_pulls", Help: "Pulls of images that run."}),
		pull: f.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_agent_image_pull_seconds", Help: "Time of a successful pull, including unpacking.",
			Buckets: []float64{.1, .5, 2, 10, 30, 120, 600, 1800},
		}),
		streams: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_agent_streams", Help: "Streams that managers and gateways have open: Watch, Layers, Logs, Exec, PullImage, CommitKernel, BuildImage, Port for a connection to a port, and SSH.",
		}, []string{"call"}),
	}
	m.layers = layers.NewMeter(to)
	m.removed = f.NewCounter(prometheus.CounterOpts{Name: "berth_agent_images_removed_total", Help: "Images that the agent has removed to free space."})
	m.removedBytes = f.NewCounter(prometheus.CounterOpts{Name: "berth_agent_images_removed_bytes_total", Help: "Bytes of the disk of images that became free when images were removed."})
	m.commits = f.NewCounterVec(prometheus.CounterOpts{Name: "berth_agent_commits_total", Help: "Commits of containers to images that ended, by result."}, []string{"result"})
	m.commitBytes = f.NewCounter(prometheus.CounterOpts{Name: "berth_agent_commit_sent_bytes_total", Help: "Bytes of committed images that their registry did not have."})
	m.commit = f.NewHistogram(prometheus.HistogramOpts{
		Name: "berth_agent_commit_seconds", Help: "Time of a successful commit, including the upload.",
		Buckets: []float64{.1, .5, 2, 10, 30, 120, 600, 1800},
	})
	m.commitPause = f.NewHistogram(prometheus.HistogramOpts{
		Name: "berth_agent_commit_pause_seconds", Help: "Time for which a successful commit paused its container.",
		Buckets: []float64{.01, .05, .1, .5, 1, 5, 30},
	})
	m.builds = f.NewCounterVec(prometheus.CounterOpts{Name: "berth_agent_builds_total", Help: "Builds of images that ended, by result: ok, failed (a step or its input), error (the machine, a registry or a cancellation)."}, []string{"result"})
	m.buildSteps = f.NewCounterVec(prometheus.CounterOpts{Name: "berth_agent_build_steps_total", Help: "Steps of successful builds, by whether they ran or the cache had their results."}, []string{"source"})
	m.buildBytes = f.NewCounter(prometheus.CounterOpts{Name: "berth_agent_build_sent_bytes_total", Help: "Bytes of built images that their registry did not have."})
	m.build = f.NewHistogram(prometheus.HistogramOpts{
		Name: "berth_agent_build_seconds", Help: "Time of a successful build, including the upload.",
		Buckets: []float64{.5, 2, 10, 30, 120, 600, 1800, 7200},
	})
	for _, result := range []string{"ok", "failed", "error"} {
		m.builds.WithLabelValues(result).Add(0)
	}
	for _, source := range []string{"run", "cache"} {
		m.buildSteps.WithLabelValues(source).Add(0)
	}
	for _, result := range []string{"ok", "failed"} {
		m.commits.WithLabelValues(result).Add(0)
		m.pulls.WithLabelValues(result).Add(0)
	}
	for _, s := range agentpb.Agent_ServiceDesc.Streams {
		m.streams.WithLabelValues(s.StreamName).Set(0)
	}
	for _, kind := range []string{portStream, sshStream} {
		m.streams.WithLabelValues(kind).Set(0)
	}
	return m
}

// pulled records an image pull that has ended.
func (m *meter) pulled(begun time.Time, err error) {
	m.pulling.Dec()
	if err != nil {
		m.pulls.WithLabelValues("failed").Inc()
		return
	}
	m.pulls.WithLabelValues("ok").Inc()
	m.pull.Observe(time.Since(begun).Seconds())
}

// committed records a commit that has ended.
func (m *meter) committed(begun time.Time, done runtime.Committed, err error) {
	if err != nil {
		m.commits.WithLabelValues("failed").Inc()
		return
	}
	m.commits.WithLabelValues("ok").Inc()
	m.commitBytes.Add(float64(done.Sent))
	m.commit.Observe(time.Since(begun).Seconds())
	m.commitPause.Observe(done.Paused.Seconds())
}

// built records a build that has ended.
func (m *meter) built(begun time.Time, done *build.Result, err error) {
	var failed *build.Error
	switch {
	case errors.As(err, &failed):
		m.builds.WithLabelValues("failed").Inc()
	case err != nil:
		m.builds.WithLabelValues("error").Inc()
	default:
		m.builds.WithLabelValues("ok").Inc()
		m.buildSteps.WithLabelValues("cache").Add(float64(done.Cached))
		m.buildSteps.WithLabelValues("run").Add(float64(done.Steps - done.Cached))
		m.buildBytes.Add(float64(done.Sent))
		m.build.Observe(time.Since(begun).Seconds())
	}
}

// stream counts open streams.
func (m *meter) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	open := m.streams.WithLabelValues(path.Base(info.FullMethod))
	open.Inc()
	defer open.Dec()
	return handle(srv, stream)
}

// Descriptions of metrics that are computed at each scrape.
var (
	kernelsDesc  = prometheus.NewDesc("berth_agent_kernels", "Containers of sessions that the agent has a record of, by phase.", []string{"phase"}, nil)
	diskSizeDesc = prometheus.NewDesc("berth_agent_disk_size_bytes", "Size of a disk that the agent or its containers write to.", []string{"disk"}, nil)
	diskFreeDesc = prometheus.NewDesc("berth_agent_disk_free_bytes", "Free space of a disk that the agent or its containers write to.", []string{"disk"}, nil)
	inodeDesc    = prometheus.NewDesc("berth_agent_disk_free_inodes", "Files that can still be created on a disk.", []string{"disk"}, nil)
	pluginDesc   = prometheus.NewDesc("berth_agent_plugin_up", "1 while the process of an accelerator plugin runs, else 0.", []string{"plugin"}, nil)
	restartDesc  = prometheus.NewDesc("berth_agent_plugin_restarts_total", "Number of restarts of an accelerator plugin's process.", []string{"plugin"}, nil)
)

// accelerators maps the device metrics that are exported, by their names without the key of the
// plugin. Other metrics differ between vendors and are available in the API only.
var accelerators = map[string]accelerator{
	"util":        {deviceDesc("utilization_ratio", "Utilization of a device, from 0 to 1."), nil, 0.01},
	"mem":         {deviceDesc("memory_used_bytes", "Memory of a device in use."), deviceDesc("memory_size_bytes", "Memory of a device."), 1},
	"temperature": {deviceDesc("temperature_celsius", "Temperature of a device."), nil, 1},
	"power":       {deviceDesc("power_watts", "Power draw of a device."), nil, 1},
}

type accelerator struct {
	value, capacity *prometheus.Desc
	scale           float64
}

func deviceDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("berth_accelerator_"+name, help, []string{"device"}, nil)
}

// collector exports the agent's current state without measuring anything.
type collector struct{ a *Agent }

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{kernelsDesc, diskSizeDesc, diskFreeDesc, inodeDesc, pluginDesc, restartDesc} {
		out <- d
	}
	for _, d := range accelerators {
		out <- d.value
		if d.capacity != nil {
			out <- d.capacity
		}
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	if c.a.available() != nil {
		return // the agent is still recovering its kernels
	}
	c.kernels(out)
	c.disks(out)
	for name, s := range c.a.devices.Plugins() {
		up := 0.0
		if s.State == pluginhost.Running {
			up = 1
		}
		out <- prometheus.MustNewConstMetric(pluginDesc, prometheus.GaugeValue, up, name)
		out <- prometheus.MustNewConstMetric(restartDesc, prometheus.CounterValue, float64(s.Restarts), name)
	}
	c.devices(out)
}

func (c collector) kernels(out chan<- prometheus.Metric) {
	count := map[agentpb.KernelState_Phase]int{}
	for _, k := range c.a.kernels.List() {
		count[k.Phase()]++
	}
	for number, name := range agentpb.KernelState_Phase_name {
		if phase := agentpb.KernelState_Phase(number); phase != agentpb.KernelState_UNKNOWN {
			out <- prometheus.MustNewConstMetric(kernelsDesc, prometheus.GaugeValue, float64(count[phase]), strings.ToLower(name))
		}
	}
}

func (c collector) disks(out chan<- prometheus.Metric) {
	for _, d := range c.a.watched() {
		var fs unix.Statfs_t
		if unix.Statfs(d.Dir, &fs) != nil {
			continue // the agent's conditions give the reason
		}
		label, _, _ := strings.Cut(d.Name, "'") // "agent's disk" or "containers' disk"
		block := float64(fs.Bsize)
		out <- prometheus.MustNewConstMetric(diskSizeDesc, prometheus.GaugeValue, float64(fs.Blocks)*block, label)
		out <- prometheus.MustNewConstMetric(diskFreeDesc, prometheus.GaugeValue, float64(fs.Bavail)*block, label)
		if fs.Files > 0 {
			out <- prometheus.MustNewConstMetric(inodeDesc, prometheus.GaugeValue, float64(fs.Ffree), label)
		}
	}
}

func (c collector) devices(out chan<- prometheus.Metric) {
	seen := map[string]bool{} // a duplicate from a plugin must not make the whole scrape fail
	for _, m := range c.a.devices.NodeMetrics() {
		key, _, _ := strings.Cut(m.DeviceId, ":")
		kind, known := accelerators[strings.TrimPrefix(m.Name, key+"_")]
		if !known || m.DeviceId == "" || m.Quality == agentpb.Metric_UNAVAILABLE || seen[m.Name+" "+m.DeviceId] {
			continue
		}
		seen[m.Name+" "+m.DeviceId] = true
		out <- prometheus.MustNewConstMetric(kind.value, prometheus.GaugeValue, m.Value*kind.scale, m.DeviceId)
		if kind.capacity != nil && m.Capacity > 0 {
			out <- prometheus.MustNewConstMetric(kind.capacity, prometheus.GaugeValue, m.Capacity, m.DeviceId)
		}
	}
}

// registerer returns the registry for metrics, or nil.
func (a *Agent) registerer() prometheus.Registerer {
	if a.cfg.Registry == nil {
		return nil
	}
	return a.cfg.Registry
}

// measure registers the agent's metrics.
func (a *Agent) measure(to prometheus.Registerer) error {
	a.meter = newMeter(to)
	if to == nil {
		return nil
	}
	if a.node != nil {
		a.node.Measure(to)
	}
	return to.Register(collector{a})
}

// Checks returns the readiness checks: the agent has recovered its kernels, it is connected to a
// manager, and it can start containers. A condition that keeps new sessions away is shown but does
// not affect readiness.
func (a *Agent) Checks() []opsserver.Check {
	checks := []opsserver.Check{
		{Name: "kernels", Probe: func(context.Context) error { return a.available() }},
		{Name: "runtime", Probe: func(context.Context) error { return a.condition(report.RuntimeUnavailable) }},
		{Name: "machine", Optional: true, Probe: func(context.Context) error {
			var all error
			for _, kind := range []string{report.DiskPressure, report.InodePressure, report.MemoryPressure} {
				all = errors.Join(all, a.condition(kind))
			}
			return all
		}},
	}
	if a.node != nil {
		checks = append(checks, opsserver.Check{Name: "managers", Probe: func(context.Context) error {
			if len(a.node.Clients()) == 0 {
				return fmt.Errorf("no manager is connected: %w", errdefs.ErrUnavailable)
			}
			return nil
		}})
	}
	return checks
}

// condition returns an error with the reason of a condition that is true, and nil if it is false or
// has not been checked yet.
func (a *Agent) condition(kind string) error {
	if a.available() != nil {
		return nil // the check of the kernels reports this
	}
	for _, c := range a.monitor.List() {
		if c.Type == kind && c.Status {
			return fmt.Errorf("%s: %w", c.Reason, errdefs.ErrUnavailable)
		}
	}
	return nil
}
