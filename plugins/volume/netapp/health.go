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
func (f *flexvol) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := f.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	h.Metadata["svm"], h.Metadata["volume"], h.Metadata["ontap"] = f.options.SVM, f.options.Volume, f.version
	worse := func(state pb.HealthReport_State, reason string) {
		h.State = max(h.State, state)
		h.Reason = strings.TrimPrefix(h.Reason+"; "+reason, "; ")
	}
	if f.reason != "" {
		worse(pb.HealthReport_DEGRADED, f.reason)
	}
	var v info
	if err := f.client.Get(ctx, "/api/storage/volumes/"+f.uuid, query("fields", "state,quota.state"), &v); err != nil {
		worse(pb.HealthReport_DEGRADED, "the array's management does not answer: "+status.Convert(driver.Error("", err)).Message())
		return h, nil
	}
	if v.State != "online" {
		worse(pb.HealthReport_UNAVAILABLE, "the array reports that the volume is "+v.State)
	}
	switch {
	case v.Quota.State == "on" || f.reason != "":
	case v.Quota.State == "initializing":
		worse(pb.HealthReport_DEGRADED, "usage and limits are not exact: the array is counting again")
	default:
		worse(pb.HealthReport_DEGRADED, "limits are not enforced: the array reports that quotas are "+v.Quota.State)
	}
	return h, nil
}

// Capacity implements driver.Sizer.
func (f *flexvol) Capacity(ctx context.Context) (*pb.CapacityReport, error) {
	var v info
	q := query("fields", "space.size,space.used,space.available,files.maximum,files.used")
	if err := f.client.Get(ctx, "/api/storage/volumes/"+f.uuid, q, &v); err != nil {
		return nil, err
	}
	return &pb.CapacityReport{
		TotalBytes: v.Space.Size, UsedBytes: v.Space.Used, AvailableBytes: v.Space.Available,
		TotalInodes: &v.Files.Maximum, UsedInodes: &v.Files.Used,
	}, nil
}

// three are values of one kind.
type three struct {
	Read  float64 `json:"read"`
	Write float64 `json:"write"`
}

type sample struct {
	Timestamp  time.Time `json:"timestamp"`
	Duration   string    `json:"duration"` // ISO 8601: PT15S
	Status     string    `json:"status"`
	IOPS       three     `json:"iops"`
	Throughput three     `json:"throughput"` // bytes per second
	Latency    three     `json:"latency"`    // microseconds
}

// Performance implements driver.Meter. It returns the newest complete sample, which contains rates
// rather than counters.
func (f *flexvol) Performance(ctx context.Context) (*pb.PerformanceSample, error) {
	var found struct {
		Records []sample `json:"records"`
	}
	q := query("interval", "1h", "order_by", "timestamp desc", "max_records", "20", "fields", "timestamp,duration,status,iops,throughput,latency")
	if err := f.client.Get(ctx, "/api/storage/volumes/"+f.uuid+"/metrics", q, &found); err != nil {
		return nil, err
	}
	var last *sample
	for i, s := range found.Records {
		if s.Status == "ok" && (last == nil || s.Timestamp.After(last.Timestamp)) {
			last = &found.Records[i]
		}
	}
	if last == nil {
		return nil, driver.Retryable(15*time.Second, "the array has no complete sample yet")
	}
	return &pb.PerformanceSample{
		Subject: pb.PerformanceSample_THIS_VOLUME, WindowMs: window(last.Duration).Milliseconds(), AsOfUnixMs: last.Timestamp.UnixMilli(),
		ReadOpsPerSecond: &last.IOPS.Read, WriteOpsPerSecond: &last.IOPS.Write,
		ReadBytesPerSecond: &last.Throughput.Read, WriteBytesPerSecond: &last.Throughput.Write,
		ReadLatencyUs: &last.Latency.Read, WriteLatencyUs: &last.Latency.Write,
	}, nil
}

// window parses a sample's duration; samples of the last hour cover 15 s.
func window(iso string) time.Duration {
	d, err := time.ParseDuration(strings.ToLower(strings.TrimPrefix(iso, "PT")))
	if err != nil || d <= 0 {
		return 15 * time.Second
	}
	return d
}
