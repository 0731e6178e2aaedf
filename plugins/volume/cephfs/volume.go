package main

import (
	"context"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// filesystem is one open volume.
type filesystem struct {
	*driver.Mount
	options options
	client  string      // that mounted it
	reason  string      // why there are no limits
	denied  atomic.Bool // setting a quota failed for lack of permission
}

func open(_ context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	root, err := m.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if _, err := count(root, bytes); err != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "mount_path: %s is %s, which lacks the attributes of CephFS: %v", m.Path(), m.FSType(), err)
	}
	st, err := m.Statfs()
	if err != nil {
		return nil, err
	}
	f := &filesystem{Mount: m, options: o, client: "ceph-fuse"}
	if !o.Quota {
		f.reason = "no limits: the option quota is false"
	}
	if st.Type == unix.CEPH_SUPER_MAGIC {
		f.client = "kernel " + release()
		if !keeps(release()) {
			f.reason = "no limits: the CephFS client of Linux " + release() + " does not enforce quotas; 4.17 and newer do"
		}
	}
	return f, nil
}

// Traits implements driver.Volume. The clients enforce the limits with slightly outdated
// statistics: DELAYED.
func (f *filesystem) Traits() driver.Traits {
	if f.reason != "" {
		return driver.Traits{Enforcement: pb.Enforcement_NONE}
	}
	return driver.Traits{Enforcement: pb.Enforcement_DELAYED, Inodes: true}
}

// Health implements driver.Volume.
func (f *filesystem) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := f.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	h.Metadata["client"] = f.client
	if f.reason != "" {
		driver.Worse(h, pb.HealthReport_DEGRADED, f.reason)
	}
	if f.denied.Load() {
		driver.Worse(h, pb.HealthReport_DEGRADED, "quotas were refused: "+lacksP)
	}
	return h, nil
}

// Capacity implements driver.Sizer. Ceph has no fixed number of inodes, and reports other values in
// their place.
func (f *filesystem) Capacity(ctx context.Context) (*pb.CapacityReport, error) {
	c, err := f.Mount.Capacity(ctx)
	if err == nil {
		c.TotalInodes, c.UsedInodes = nil, nil
	}
	return c, err
}

// Close implements driver.Volume.
func (f *filesystem) Close() error { return nil }
