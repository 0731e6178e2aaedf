package main

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Health implements driver.Volume.
func (f *filesystem) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := f.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	h.Metadata["filesystem"], h.Metadata["weka"] = f.options.Filesystem, f.release
	worse := func(reason string) { driver.Worse(h, pb.HealthReport_DEGRADED, reason) }
	if f.reason != "" {
		worse(f.reason)
	}
	fs, err := get[info](ctx, f, f.at, nil)
	switch {
	case err != nil:
		worse("the cluster's management does not answer: " + status.Convert(driver.Error("", err)).Message())
	case !fs.Ready:
		worse("the cluster reports that the file system is " + strings.ToLower(fs.Status))
	}
	return h, nil
}

// Capacity implements driver.Sizer.
func (f *filesystem) Capacity(ctx context.Context) (*pb.CapacityReport, error) {
	fs, err := get[info](ctx, f, f.at, nil)
	if err != nil {
		return nil, err
	}
	return &pb.CapacityReport{TotalBytes: fs.Total, UsedBytes: fs.Used, AvailableBytes: fs.Available}, nil
}

// realtimeWindow is the window of the cluster's current rates.
const realtimeWindow = time.Second

// Performance implements driver.Meter. It returns the sum over all processes of the cluster, with
// latencies weighted by their operations.
func (f *filesystem) Performance(ctx context.Context) (*pb.PerformanceSample, error) {
	type process struct {
		Reads        float64 `json:"reads_per_second"`
		Writes       float64 `json:"writes_per_second"`
		ReadBytes    float64 `json:"read_bytes_per_second"`
		WriteBytes   float64 `json:"write_bytes_per_second"`
		ReadLatency  float64 `json:"read_latency_usecs"`
		WriteLatency float64 `json:"write_latency_usecs"`
	}
	all, err := get[[]process](ctx, f, base+"/stats/realtime", nil)
	if err != nil {
		return nil, err
	}
	var sum process
	for _, one := range all {
		sum.Reads += one.Reads
		sum.Writes += one.Writes
		sum.ReadBytes += one.ReadBytes
		sum.WriteBytes += one.WriteBytes
		sum.ReadLatency += one.ReadLatency * one.Reads
		sum.WriteLatency += one.WriteLatency * one.Writes
	}
	p := &pb.PerformanceSample{
		Subject: pb.PerformanceSample_WHOLE_CLUSTER, WindowMs: realtimeWindow.Milliseconds(), AsOfUnixMs: time.Now().UnixMilli(),
		ReadOpsPerSecond: &sum.Reads, WriteOpsPerSecond: &sum.Writes,
		ReadBytesPerSecond: &sum.ReadBytes, WriteBytesPerSecond: &sum.WriteBytes,
	}
	if sum.Reads > 0 { // otherwise there is no latency
		mean := sum.ReadLatency / sum.Reads
		p.ReadLatencyUs = &mean
	}
	if sum.Writes > 0 {
		mean := sum.WriteLatency / sum.Writes
		p.WriteLatencyUs = &mean
	}
	return p, nil
}
