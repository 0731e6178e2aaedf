package main

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// cluster is what it says of itself.
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
		return &c, err // there is one
	}
	return nil, status.Error(codes.FailedPrecondition, "the cluster says nothing of itself")
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
		driver.Worse(h, pb.HealthReport_DEGRADED, "the cluster says that it is "+c.State)
	}
	return h, nil
}

// rateWindow is what the cluster's rates are taken over.
const rateWindow = 10 * time.Second

// Performance implements driver.Meter. The cluster tells latencies too, in a unit
// that is written down nowhere: they are left out.
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
