// Package project is the driver of local file systems with project quotas: a scope is a directory
// with its own project, whose limits the kernel enforces and whose usage it accounts. The plugins
// for xfs and ext4 share this code.
package project

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/xfs/prjquota"
)

// Options are empty, because the mount determines everything.
type Options struct{}

// Backend returns a plugin for one type of file system, which statfs identifies by magic.
func Backend(name string, magic int64) driver.Backend[Options] {
	return driver.Backend[Options]{
		Vendor: "Linux", Name: name, Version: "1.0.0",
		Open: func(_ context.Context, m *driver.Mount, _ Options) (driver.Volume, error) {
			return open(m, name, magic)
		},
	}
}

// Volume is an open volume.
type Volume struct {
	*driver.Mount
	quota ability
	walk  *driver.Walker // measures scopes if the kernel does not account them
}

// walkAge limits the age of a usage from a walk. A mount without accounting is a configuration
// error to repair, not a mode of operation.
const walkAge = 30 * time.Second

// ability describes the usable features of project quotas, and why others are not usable.
type ability struct {
	counted, limited bool
	why              string // for people; "" if everything is usable
}

func open(m *driver.Mount, name string, magic int64) (driver.Volume, error) {
	st, err := m.Statfs()
	if err != nil {
		return nil, err
	}
	if st.Type != magic {
		return nil, status.Errorf(codes.FailedPrecondition, "mount_path %s is %s, not %s", m.Path(), m.FSType(), name)
	}
	root, err := m.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	q, err := look(root)
	if err != nil {
		return nil, driver.Error("project quotas", err)
	}
	return &Volume{Mount: m, quota: q, walk: driver.NewWalker(m, walkAge)}, nil
}

// look determines the features that the mount and the permissions of this process provide.
func look(root *os.File) (ability, error) {
	s, err := prjquota.StateOf(root)
	if err != nil {
		return ability{}, err
	}
	if !s.Accounted {
		return ability{why: "project quotas are off: mount the file system with prjquota, and create ext4 with the features quota and project"}, nil
	}
	// The project is not used by scopes. Only an administrator can read its quota.
	_, err = prjquota.Get(root, 1)
	if errors.Is(err, unix.EPERM) {
		return ability{why: "the plugin lacks CAP_SYS_ADMIN, without which limits are neither set nor read"}, nil
	}
	if err != nil {
		return ability{}, err
	}
	// A scope that was created in another project could not be moved into it, and would not be
	// accounted there.
	if id, inherited, err := prjquota.Of(root); err == nil && id != 0 && inherited {
		return ability{}, status.Errorf(codes.FailedPrecondition, "mount_path belongs to project %d itself: projects do not nest", id)
	}
	if !s.Enforced {
		return ability{counted: true, why: "project quotas are counted but not enforced: mount with prjquota, not pqnoenforce"}, nil
	}
	return ability{counted: true, limited: true}, nil
}

// Traits implements driver.Volume.
func (v *Volume) Traits() driver.Traits {
	t := driver.Traits{Enforcement: pb.Enforcement_NONE}
	if v.quota.limited {
		t.Enforcement, t.Inodes = pb.Enforcement_HARD, true
	}
	return t
}

// Health adds to the mount's health whether limits are enforced. It checks this each time, because
// an administrator can disable quotas of a mounted file system.
func (v *Volume) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := v.Mount.Health(ctx)
	if err != nil || h.State != pb.HealthReport_HEALTHY {
		return h, err
	}
	root, err := v.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	now, err := look(root)
	switch {
	case err != nil:
		h.State, h.Reason = pb.HealthReport_DEGRADED, status.Convert(err).Message()
	case now.why != "":
		h.State, h.Reason = pb.HealthReport_DEGRADED, now.why
	case !v.quota.limited:
		h.State, h.Reason = pb.HealthReport_DEGRADED, "project quotas are on since the volume was opened: open it again"
	}
	return h, nil
}

// Close implements driver.Volume.
func (v *Volume) Close() error { return v.walk.Close() }
