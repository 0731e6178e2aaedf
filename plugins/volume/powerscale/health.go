package main

import (
	"context"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Health implements driver.Volume.
func (v *volume) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := v.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	h.Metadata["cluster"], h.Metadata["onefs"], h.Metadata["path"] = v.cluster, v.version, v.options.Path
	worse := func(reason string) {
		h.State = pb.HealthReport_DEGRADED
		h.Reason = strings.TrimPrefix(h.Reason+"; "+reason, "; ")
	}
	now, err := v.unlicensed(ctx)
	switch {
	case err != nil:
		worse("the cluster's management does not answer: " + status.Convert(driver.Error("", err)).Message())
	case now != "":
		worse(now)
	case v.reason != "":
		worse("SmartQuotas is licensed since the volume was opened: open it again")
	}
	return h, nil
}

// Capacity implements driver.Sizer. It returns the capacity of the cluster, which all directories
// share.
func (v *volume) Capacity(ctx context.Context) (*pb.CapacityReport, error) {
	var found struct {
		Stats []struct {
			Key   string `json:"key"`
			Error any    `json:"error"`
			Value *int64 `json:"value"`
			Time  int64  `json:"time"`
		} `json:"stats"`
	}
	keys := url.Values{"keys": {"ifs.bytes.total,ifs.bytes.used,ifs.bytes.avail"}}
	if err := v.client.Get(ctx, "/platform/3/statistics/current", keys, &found); err != nil {
		return nil, err
	}
	out, seen := &pb.CapacityReport{}, 0
	for _, s := range found.Stats {
		if s.Error != nil || s.Value == nil {
			continue
		}
		seen++
		switch s.Key {
		case "ifs.bytes.total":
			out.TotalBytes, out.AsOfUnixMs = *s.Value, s.Time*1000
		case "ifs.bytes.used":
			out.UsedBytes = *s.Value
		case "ifs.bytes.avail":
			out.AvailableBytes = *s.Value
		}
	}
	if seen < 3 {
		return nil, driver.Retryable(15*time.Second, "the cluster does not know its own size at the moment")
	}
	return out, nil
}

// window is the interval of the cluster's summaries.
const window = 5 * time.Second

// Performance implements driver.Meter. It returns the traffic of clients over all nodes and
// protocols. The rates of disks would include protection and rebuilding.
func (v *volume) Performance(ctx context.Context) (*pb.PerformanceSample, error) {
	var found struct {
		Protocol []struct {
			Class string  `json:"class"`
			Rate  float64 `json:"operation_rate"`
			In    float64 `json:"in"`  // bytes per second from clients
			Out   float64 `json:"out"` // bytes per second to clients
			Micro float64 `json:"time_avg"`
			Time  int64   `json:"time"`
		} `json:"protocol"`
	}
	q := url.Values{"classes": {"read,write"}, "nodes": {"all"}, "degraded": {"true"}}
	if err := v.client.Get(ctx, "/platform/3/statistics/summary/protocol", q, &found); err != nil {
		return nil, err
	}
	var read, write struct{ ops, bytes, spent float64 }
	at := time.Now().Unix()
	for _, p := range found.Protocol {
		switch p.Class {
		case "read":
			read.ops, read.bytes, read.spent = read.ops+p.Rate, read.bytes+p.Out, read.spent+p.Rate*p.Micro
		case "write":
			write.ops, write.bytes, write.spent = write.ops+p.Rate, write.bytes+p.In, write.spent+p.Rate*p.Micro
		default:
			continue
		}
		at = p.Time
	}
	out := &pb.PerformanceSample{
		Subject: pb.PerformanceSample_WHOLE_CLUSTER, WindowMs: window.Milliseconds(), AsOfUnixMs: at * 1000,
		ReadOpsPerSecond: &read.ops, WriteOpsPerSecond: &write.ops, ReadBytesPerSecond: &read.bytes, WriteBytesPerSecond: &write.bytes,
	}
	if read.ops > 0 {
		read.spent /= read.ops
		out.ReadLatencyUs = &read.spent
	}
	if write.ops > 0 {
		write.spent /= write.ops
		out.WriteLatencyUs = &write.spent
	}
	return out, nil
}
