package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/efs/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/nfs/nfsmount"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// filesystem is one open volume.
type filesystem struct {
	*driver.Directory
	service *service
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	if host, yes := another(m.Source(), o.FileSystem); yes {
		return nil, status.Errorf(codes.FailedPrecondition, "file_system_id: %s is of %s", m.Path(), host)
	}
	s, err := connect(o)
	if err != nil {
		return nil, err
	}
	if _, err := s.describe(ctx); err != nil {
		s.http.CloseIdleConnections()
		return nil, err
	}
	return &filesystem{driver.NewDirectory(m, time.Duration(o.MaxAge)*time.Second), s}, nil
}

// another reports whether the mounted source is the name of another file system, and returns that
// name. A source that is the address of a mount target or the helper's tunnel contains no name.
func another(source, id string) (host string, yes bool) {
	host, _, _ = strings.Cut(source, ":")
	return host, strings.HasPrefix(host, "fs-") && !strings.HasPrefix(host, id+".")
}

// Capacity implements driver.Sizer. It returns the size from the mount, which is 8 EiB, and the
// usage that EFS has metered, which lags behind.
func (f *filesystem) Capacity(ctx context.Context) (*pb.CapacityReport, error) {
	c, err := f.Directory.Capacity(ctx)
	if err != nil {
		return nil, err
	}
	d, err := f.service.describe(ctx)
	if err != nil {
		return nil, err
	}
	c.Elastic, c.TotalInodes, c.UsedInodes = true, nil, nil
	c.UsedBytes = d.SizeInBytes.Value
	if d.SizeInBytes.Timestamp != nil {
		c.AsOfUnixMs = d.SizeInBytes.Timestamp.UnixMilli()
	}
	return c, nil
}

// Health implements driver.Volume.
func (f *filesystem) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := f.Directory.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	if mount, err := nfsmount.Find(f.Path()); err != nil { // a directory below the mount point
		h.Metadata["mount"] = err.Error()
	} else {
		for k, v := range mount.Shown() {
			h.Metadata[k] = v
		}
		for _, doubt := range mount.Warnings() {
			driver.Worse(h, pb.HealthReport_DEGRADED, doubt)
		}
	}
	if err := f.Writable(); err != nil {
		driver.Worse(h, pb.HealthReport_DEGRADED, "EFS refuses to let this user write ("+status.Convert(err).Message()+"): the file system's policy must allow elasticfilesystem:ClientWrite and ClientRootAccess")
	}
	d, err := f.service.describe(ctx)
	if err != nil {
		driver.Worse(h, pb.HealthReport_DEGRADED, "AWS does not answer: "+status.Convert(err).Message())
		return h, nil
	}
	f.state(h, d)
	targets, err := f.service.targets(ctx)
	if err != nil {
		driver.Worse(h, pb.HealthReport_DEGRADED, "AWS does not answer: "+status.Convert(err).Message())
		return h, nil
	}
	zones(h, targets)
	return h, nil
}

// state adds the state of the file system to the health report.
func (f *filesystem) state(h *pb.HealthReport, d *types.FileSystemDescription) {
	h.Metadata["life_cycle"] = string(d.LifeCycleState)
	h.Metadata["throughput_mode"], h.Metadata["performance_mode"] = string(d.ThroughputMode), string(d.PerformanceMode)
	if d.ProvisionedThroughputInMibps != nil {
		h.Metadata["provisioned_mib_per_second"] = fmt.Sprint(*d.ProvisionedThroughputInMibps)
	}
	switch d.LifeCycleState {
	case types.LifeCycleStateAvailable, types.LifeCycleStateUpdating:
	case types.LifeCycleStateDeleting, types.LifeCycleStateDeleted:
		driver.Worse(h, pb.HealthReport_UNAVAILABLE, f.service.id+" is "+string(d.LifeCycleState))
	default:
		driver.Worse(h, pb.HealthReport_DEGRADED, f.service.id+" is "+string(d.LifeCycleState))
	}
}

// zones adds the states of the mount targets to the health report.
func zones(h *pb.HealthReport, all []types.MountTargetDescription) {
	var here, not []string
	for _, t := range all {
		name := *t.MountTargetId
		if t.AvailabilityZoneName != nil {
			name = *t.AvailabilityZoneName
		}
		if t.LifeCycleState == types.LifeCycleStateAvailable {
			here = append(here, name)
		} else {
			not = append(not, name+" is "+string(t.LifeCycleState))
		}
	}
	h.Metadata["mount_targets"] = strings.Join(here, " ")
	if len(here) == 0 {
		driver.Worse(h, pb.HealthReport_DEGRADED, "no mount target is available: nodes cannot mount it")
	}
	if len(not) > 0 {
		driver.Worse(h, pb.HealthReport_DEGRADED, "mount targets: "+strings.Join(not, ", "))
	}
}

// Close implements driver.Volume.
func (f *filesystem) Close() error {
	f.service.http.CloseIdleConnections()
	return f.Directory.Close()
}
