package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Health implements driver.Volume.
func (n *namespace) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := n.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	s, err := n.state(ctx)
	switch {
	case err != nil:
		driver.Worse(h, pb.HealthReport_DEGRADED, "the Anvil does not answer: "+status.Convert(driver.Error("", err)).Message())
	case s.State != "" && s.State != "HEALTHY":
		driver.Worse(h, pb.HealthReport_DEGRADED, "the Anvil reports that the cluster is "+s.State)
	}
	h.Metadata["cluster"], h.Metadata["path"] = s.Name, n.options.Path
	return h, nil
}

// Capacity implements driver.Sizer. The namespace has the capacity of the whole cluster.
func (n *namespace) Capacity(ctx context.Context) (*pb.CapacityReport, error) {
	s, err := n.state(ctx)
	if err != nil {
		return nil, err
	}
	total, used, free := number(&s.Capacity.Total), number(&s.Capacity.Used), number(&s.Capacity.Free)
	if total == nil || free == nil {
		return nil, status.Error(codes.Internal, fmt.Sprintf("the Anvil reports the capacity %v", s.Capacity))
	}
	if used == nil {
		rest := *total - *free
		used = &rest
	}
	return &pb.CapacityReport{TotalBytes: *total, UsedBytes: *used, AvailableBytes: *free}, nil
}
