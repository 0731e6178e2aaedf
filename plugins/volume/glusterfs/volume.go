package main

import (
	"context"
	"path"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// filesystem is one open volume.
type filesystem struct {
	*driver.Mount
	walk   *driver.Walker
	pool   *pool
	root   string // the directory of the Gluster volume at the mount point
	quota  bool   // the Gluster volume has quotas
	inodes bool
	reason string // why there are no limits
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	name, below, ok := mounted(m.Source())
	if m.FSType() != "fuse.glusterfs" || !ok {
		return nil, status.Errorf(codes.FailedPrecondition, "mount_path: %s is %s %q, not GlusterFS", m.Path(), m.FSType(), m.Source())
	}
	if o.Volume != "" {
		name = o.Volume
	}
	f := &filesystem{Mount: m, pool: newPool(o.Gluster, name), root: path.Join("/", below, o.Path)}
	if err := f.look(ctx); err != nil {
		return nil, err
	}
	f.walk = driver.NewWalker(m, time.Duration(o.MaxAge)*time.Second)
	return f, nil
}

// mounted parses the source of a mount: "server:volume" or "server:/volume/directory".
func mounted(source string) (volume, below string, ok bool) {
	if strings.HasPrefix(source, "[") { // an IPv6 address
		_, source, ok = strings.Cut(source, "]:")
	} else {
		_, source, ok = strings.Cut(source, ":")
	}
	volume, below, _ = strings.Cut(strings.TrimPrefix(source, "/"), "/")
	return volume, below, ok && volume != ""
}

// look determines the abilities of the Gluster volume.
func (f *filesystem) look(ctx context.Context) error {
	if !f.pool.program.There() {
		f.reason = "no limits: the program " + f.pool.program.Path + " (option gluster) of the storage pool's nodes does not exist"
		return nil
	}
	now, err := f.pool.features(ctx)
	if err != nil {
		return err
	}
	f.quota, f.inodes = now.quota, now.quota && now.inodes
	if !f.quota {
		f.reason = "no limits: quota is not enabled on the Gluster volume (gluster volume quota " + f.pool.volume + " enable)"
	}
	return nil
}

// Traits implements driver.Volume. Bricks exchange their usage only every few seconds and write
// asynchronously: DELAYED.
func (f *filesystem) Traits() driver.Traits {
	t := driver.Traits{Enforcement: pb.Enforcement_DELAYED, Inodes: f.inodes}
	if !f.quota {
		t.Enforcement = pb.Enforcement_NONE
	}
	if !f.inodes {
		t.Lacks = append(t.Lacks, pb.Capability_USAGE_FAST)
	}
	return t
}

// slow is the soft-timeout, in seconds, from which limits are considered unreliable.
const slow = 10

// Health implements driver.Volume.
func (f *filesystem) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := f.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	h.Metadata["volume"] = f.pool.volume
	if f.reason != "" {
		driver.Worse(h, pb.HealthReport_DEGRADED, f.reason)
	}
	if !f.pool.program.There() {
		return h, nil // the reason contains it
	}
	now, err := f.pool.features(ctx)
	if err != nil {
		driver.Worse(h, pb.HealthReport_DEGRADED, "the storage pool does not answer: "+status.Convert(err).Message())
		return h, nil
	}
	h.Metadata["soft_timeout_s"], h.Metadata["hard_timeout_s"] = now.soft, now.hard
	if n, err := strconv.Atoi(now.soft); err == nil && n > slow && now.quota {
		driver.Worse(h, pb.HealthReport_DEGRADED, "limits are checked every "+now.soft+" s until most of one is used: a fast writer exceeds them (gluster volume quota "+f.pool.volume+" soft-timeout)")
	}
	if f.quota && !now.quota {
		driver.Worse(h, pb.HealthReport_DEGRADED, "no limits: quota was disabled on the Gluster volume")
	}
	down, err := f.pool.down(ctx)
	if err != nil {
		driver.Worse(h, pb.HealthReport_DEGRADED, status.Convert(err).Message())
	}
	if len(down) > 0 {
		driver.Worse(h, pb.HealthReport_DEGRADED, "not running: "+strings.Join(down, ", "))
	}
	return h, nil
}

// Close implements driver.Volume.
func (f *filesystem) Close() error { return f.walk.Close() }
