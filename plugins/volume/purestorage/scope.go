package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// own is a volume with a file system per scope, which nodes mount below the volume's mount point.
type own struct {
	*driver.Mount
	*blade
}

func (v *own) fsName(scope string) string { return v.options.Prefix + scope }

// Traits implements driver.Volume.
func (v *own) Traits() driver.Traits { return driver.Traits{Enforcement: pb.Enforcement_HARD} }

// Health implements driver.Volume.
func (v *own) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := v.Mount.Health(ctx)
	if err == nil {
		v.health(ctx, h)
	}
	return h, err
}

// Capacity implements driver.Sizer.
func (v *own) Capacity(ctx context.Context) (*pb.CapacityReport, error) { return v.blade.Capacity(ctx) }

// Close implements driver.Volume.
func (v *own) Close() error {
	v.client.Close()
	return nil
}

// possible checks that a file system can have the limit.
func possible(limit *pb.Limit) error {
	if limit.Bytes != nil && *limit.Bytes == 0 {
		return status.Error(codes.InvalidArgument, "limit.bytes: for a FlashBlade, zero means no limit")
	}
	return nil
}

// live returns a scope's file system unless it is missing or destroyed.
func (v *own) live(ctx context.Context, scope string) (*filesystem, error) {
	f, err := v.find(ctx, v.fsName(scope))
	if err == nil && (f == nil || f.Destroyed) {
		return nil, status.Errorf(codes.NotFound, "the array has no file system %s", v.fsName(scope))
	}
	return f, err
}

// CreateScope implements driver.Volume. A destroyed file system that the array still keeps is
// recovered, because its name is not free. It was empty when it was destroyed.
func (v *own) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	name := v.fsName(scope)
	f, err := v.find(ctx, name)
	if err != nil {
		return err
	}
	if f == nil {
		failed := v.create(ctx, name, limit)
		if failed == nil {
			return v.place(scope)
		}
		// Another proxy may have created it, or an earlier response was lost.
		if f, err = v.find(ctx, name); f == nil || err != nil {
			return fmt.Errorf("create file system %s: %w", name, failed)
		}
	}
	if f.Destroyed {
		if err := v.destroy(ctx, name, false); err != nil {
			return fmt.Errorf("remove file system %s: %w", name, err)
		}
	}
	if err := v.resize(ctx, name, limit); err != nil {
		return fmt.Errorf("limit file system %s: %w", name, err)
	}
	return v.place(scope)
}

// GetScope implements driver.Volume.
func (v *own) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	f, err := v.live(ctx, scope)
	if err != nil {
		return nil, err
	}
	return scopeOf(f), nil
}

// scopeOf converts a file system to a scope. The array updates its usage periodically, so it is never
// marked as exact.
func scopeOf(f *filesystem) *pb.Scope {
	return &pb.Scope{Limit: f.limit(), UsedBytes: &f.Space.Virtual}
}

// SetScopeLimit implements driver.Volume.
func (v *own) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	f, err := v.live(ctx, scope)
	if err != nil {
		return err
	}
	if err := v.resize(ctx, f.Name, limit); err != nil {
		return fmt.Errorf("limit file system %s: %w", f.Name, err)
	}
	return nil
}

// DeleteScope implements driver.Volume. A file system is deleted with its contents, so it must be
// verified to be empty, on the mount or, if it is not mounted, by the array's usage.
func (v *own) DeleteScope(ctx context.Context, scope string) error {
	name := v.fsName(scope)
	f, err := v.find(ctx, name)
	if err != nil {
		return err
	}
	if f != nil && !f.Destroyed {
		mounted, err := v.mounted(scope)
		if err != nil {
			return err
		}
		if !mounted && f.Space.Virtual > 0 {
			return status.Errorf(codes.FailedPrecondition, "scope %s is not empty: according to the array, %d bytes are in file system %s, which is not mounted here", scope, f.Space.Virtual, name)
		}
		if err := v.EmptyScope(scope); err != nil {
			return err
		}
		if err := v.destroy(ctx, name, true); err != nil && !missing(err) {
			// An earlier response may have been lost.
			if f, ferr := v.find(ctx, name); ferr != nil || f != nil && !f.Destroyed {
				return fmt.Errorf("destroy file system %s: %w", name, err)
			}
		}
	}
	if f != nil && v.options.Eradicate {
		if err := v.eradicate(ctx, name); err != nil && !missing(err) {
			return fmt.Errorf("eradicate file system %s: %w", name, err)
		}
	}
	return v.unplace(scope)
}

// ListScopes implements driver.Lister.
func (v *own) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	return func(yield func(*pb.Scope, error) bool) {
		for f, err := range v.all(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			scope := strings.TrimPrefix(f.Name, v.options.Prefix)
			if f.Destroyed || !driver.IsScope(scope) {
				continue
			}
			s := scopeOf(&f)
			if s.Scope = scope; !yield(s, nil) {
				return
			}
		}
	}
}

// MountPlan implements driver.Mounter.
func (v *own) MountPlan(ctx context.Context, scope string) (*pb.MountSpec, error) {
	f, err := v.live(ctx, scope)
	if err != nil {
		return nil, err
	}
	return &pb.MountSpec{FsType: "nfs", Source: v.options.DataAddress + ":/" + f.Name, Options: []string{"vers=" + v.options.Version, "hard", "nosuid", "nodev"}}, nil
}
