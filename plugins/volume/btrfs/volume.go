package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/btrfs/qgroup"
	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// filesystem is one open volume.
type filesystem struct {
	*driver.Mount
	walker  *driver.Walker // if there are no quotas
	options options
	mode    qgroup.Mode
	reason  string // why there are no limits
}

func open(_ context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	root, err := m.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	yes, err := qgroup.IsBtrfs(root)
	if err != nil {
		return nil, err
	}
	if !yes {
		return nil, status.Errorf(codes.FailedPrecondition, "mount_path: %s is not on btrfs but on %s", m.Path(), m.FSType())
	}
	f := &filesystem{Mount: m, walker: driver.NewWalker(m, time.Duration(o.UsageMaxAge)*time.Second), options: o}
	s, err := qgroup.ReadStatus(root)
	if err == nil && s.Mode == qgroup.Off && o.Quota != "as-found" {
		if err = qgroup.Enable(root, qgroup.Mode(o.Quota)); err == nil {
			s, err = qgroup.ReadStatus(root)
		}
	}
	f.mode = s.Mode
	switch {
	case errors.Is(err, unix.EPERM):
		f.mode, f.reason = qgroup.Off, "no limits: quotas of btrfs need CAP_SYS_ADMIN"
	case err != nil:
		f.mode, f.reason = qgroup.Off, "no limits: "+err.Error()
	case s.Mode == qgroup.Off:
		f.reason = "no limits: quotas are off on this file system (btrfs quota enable, or the option quota)"
	}
	return f, nil
}

// Traits implements driver.Volume.
func (f *filesystem) Traits() driver.Traits {
	if f.mode == qgroup.Off {
		return driver.Traits{Enforcement: pb.Enforcement_NONE}
	}
	return driver.Traits{Enforcement: pb.Enforcement_HARD}
}

// Close implements driver.Volume.
func (f *filesystem) Close() error { return f.walker.Close() }

// CreateScope implements driver.Volume. The subvolume has its limit from the start.
func (f *filesystem) CreateScope(_ context.Context, scope string, limit *pb.Limit) error {
	root, err := f.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	err = qgroup.Create(root, scope, limit.Bytes)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	if err == nil {
		return nil
	}
	return f.with(scope, func(root, d *os.File, id qgroup.ID) error {
		if f.mode == qgroup.Off {
			return nil
		}
		return qgroup.SetLimit(root, id, limit.Bytes)
	})
}

// with runs do for a scope, which must be a subvolume. Calls of the kernel use the root directory,
// because a scope at its limit has no space even for them.
func (f *filesystem) with(scope string, do func(root, d *os.File, id qgroup.ID) error) error {
	root, err := f.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	d, err := f.OpenTree(scope)
	if err != nil {
		return err
	}
	defer d.Close()
	yes, err := qgroup.IsSubvolume(d)
	if err != nil {
		return err
	}
	if !yes {
		return status.Errorf(codes.FailedPrecondition, "scope %s is a plain directory: only a subvolume has limits", scope)
	}
	id, err := qgroup.Subvolume(d)
	if err != nil {
		return err
	}
	return do(root, d, id)
}

// GetScope implements driver.Volume.
func (f *filesystem) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	out := &pb.Scope{Limit: &pb.Limit{}}
	if f.mode == qgroup.Off {
		d, err := f.OpenTree(scope)
		if err != nil {
			return nil, err
		}
		f.walker.Fill(ctx, out, scope)
		return out, d.Close()
	}
	err := f.with(scope, func(root, _ *os.File, id qgroup.ID) error {
		g, used, err := figures(root, id)
		if err != nil {
			return err
		}
		s, err := qgroup.ReadStatus(root)
		if err != nil {
			return err
		}
		out.Limit.Bytes, out.UsedBytes, out.Exact = g.Limit, &used, s.Exact()
		return nil
	})
	if driverCode(err) == codes.FailedPrecondition { // the usage of a plain directory is measured
		f.walker.Fill(ctx, out, scope)
		return out, nil
	}
	return out, err
}

func driverCode(err error) codes.Code { return status.Code(driver.Error("", err)) }

// figures returns a group and the bytes that the kernel compares with its limit: the usage and the
// reservations since the last commit.
func figures(root *os.File, id qgroup.ID) (qgroup.Group, int64, error) {
	g, err := qgroup.Read(root, id)
	if errors.Is(err, unix.ENOENT) {
		return g, 0, status.Error(codes.Unavailable, "quotas were turned off since the volume was opened")
	}
	if err != nil {
		return g, 0, err
	}
	promised, err := qgroup.Reserved(root, id)
	if err != nil {
		promised = 0 // older kernels do not report it
	}
	return g, g.Referenced + max(promised, 0), nil
}

// SetScopeLimit implements driver.Volume.
func (f *filesystem) SetScopeLimit(_ context.Context, scope string, limit *pb.Limit) error {
	return f.with(scope, func(root, _ *os.File, id qgroup.ID) error {
		err := qgroup.SetLimit(root, id, limit.Bytes)
		if errors.Is(err, unix.ENOTCONN) {
			return status.Error(codes.FailedPrecondition, "quotas were turned off since the volume was opened")
		}
		return err
	})
}

// DeleteScope implements driver.Volume. An empty subvolume is removed like a directory, so one that
// is filled concurrently is not removed.
func (f *filesystem) DeleteScope(_ context.Context, scope string) error {
	var group qgroup.ID
	err := f.with(scope, func(_, _ *os.File, id qgroup.ID) error { group = id; return nil })
	if code := driverCode(err); err != nil && code != codes.NotFound && code != codes.FailedPrecondition {
		return err
	}
	if err := f.RemoveScope(scope); err != nil {
		return err
	}
	f.walker.Forget(scope)
	if group == 0 || f.mode == qgroup.Off {
		return nil
	}
	root, err := f.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	// Newer kernels remove the group themselves after the last block was freed. On others a
	// remaining group costs a few bytes, and its number is not reused.
	_ = qgroup.Remove(root, group)
	return nil
}

// Health implements driver.Volume.
func (f *filesystem) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := f.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	root, err := f.Root()
	if err != nil {
		return driver.Unavailable(err), nil
	}
	defer root.Close()
	reason := f.reason
	if reason == "" {
		reason = f.trouble(root)
	}
	h.Metadata["quota"] = string(f.mode)
	if reason != "" {
		h.State = pb.HealthReport_DEGRADED
		if h.Reason != "" {
			reason = h.Reason + "; " + reason
		}
		h.Reason = reason
	}
	return h, nil
}

// trouble returns why limits are not reliable, or "".
func (f *filesystem) trouble(root *os.File) string {
	s, err := qgroup.ReadStatus(root)
	if err != nil {
		return err.Error()
	}
	nested, err := f.nested(root)
	switch {
	case s.Mode == qgroup.Off:
		return "quotas were turned off since the volume was opened: limits are not kept"
	case s.Mode != f.mode:
		return fmt.Sprintf("quotas were %s when the volume was opened and are %s", f.mode, s.Mode)
	case s.Inconsistent && f.options.Rescan:
		if err := qgroup.Rescan(root); err != nil {
			return "usage and limits are not exact: " + err.Error()
		}
		fallthrough
	case s.Rescanning:
		return "usage and limits are not exact: they are being counted again"
	case s.Inconsistent:
		return "usage and limits are not exact: the kernel's figures are wrong (btrfs quota rescan, or the option rescan)"
	case err != nil:
		return err.Error()
	case nested > 0:
		return fmt.Sprintf("%d subvolumes are inside scopes: their contents are not counted", nested)
	}
	return ""
}
