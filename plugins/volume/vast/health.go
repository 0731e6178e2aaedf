package main

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// cluster is the status of the cluster.
type cluster struct {
	Name       string  `json:"name"`
	State      string  `json:"state"`
	Reads      float64 `json:"rd_iops"`
	Writes     float64 `json:"wr_iops"`
	ReadBytes  float64 `json:"rd_bw"`
	WriteBytes float64 `json:"wr_bw"`
}

func (v *view) cluster(ctx context.Context) (*cluster, error) {
	for c, err := range all[cluster](ctx, v, clusters, nil) {
		return &c, err // there is only one
	}
	return nil, status.Error(codes.FailedPrecondition, "the cluster does not report its state")
}

// Health implements driver.Volume.
func (v *view) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := v.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	h.Metadata["vast"], h.Metadata["path"], h.Metadata["trash"] = v.version, v.options.Path, "on"
	if v.trash != "" {
		h.Metadata["trash"] = "off: " + v.trash
	}
	if v.reason != "" {
		driver.Worse(h, pb.HealthReport_DEGRADED, v.reason)
	}
	c, err := v.cluster(ctx)
	switch {
	case err != nil:
		driver.Worse(h, pb.HealthReport_DEGRADED, "the cluster's management does not answer: "+status.Convert(driver.Error("", err)).Message())
	case c.State != "ONLINE":
		driver.Worse(h, pb.HealthReport_DEGRADED, "the cluster reports that it is "+c.State)
	}
	return h, nil
}

// rateWindow is the window of the cluster's rates.
const rateWindow = 10 * time.Second

// Performance implements driver.Meter. The cluster also reports latencies, but their unit is not
// documented, so they are omitted.
func (v *view) Performance(ctx context.Context) (*pb.PerformanceSample, error) {
	c, err := v.cluster(ctx)
	if err != nil {
		return nil, err
	}
	return &pb.PerformanceSample{
		Subject: pb.PerformanceSample_WHOLE_CLUSTER, WindowMs: rateWindow.Milliseconds(), AsOfUnixMs: time.Now().UnixMilli(),
		ReadOpsPerSecond: &c.Reads, WriteOpsPerSecond: &c.Writes,
		ReadBytesPerSecond: &c.ReadBytes, WriteBytesPerSecond: &c.WriteBytes,
	}, nil
}
