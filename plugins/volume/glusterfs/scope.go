package main

import (
	"context"
	"errors"
	"math"
	"path"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// itself is the count of a scope's directory in its own limit of objects.
const itself = 1

// possible checks that Gluster can express the limit.
func possible(limit *pb.Limit) error {
	switch {
	case limit.Bytes != nil && *limit.Bytes == 0:
		return status.Error(codes.InvalidArgument, "limit.bytes: Gluster does not support a limit of zero")
	case limit.Inodes != nil && *limit.Inodes > math.MaxInt64-itself:
		return status.Error(codes.InvalidArgument, "limit.inodes: more than Gluster can count")
	}
	return nil
}

// at returns the storage pool's path of a path below the mount.
func (f *filesystem) at(p string) string { return path.Join(f.root, p) }

// there checks that a directory exists on the mount.
func (f *filesystem) there(p string) error {
	d, err := f.OpenTree(p)
	if err != nil {
		return err
	}
	return d.Close()
}

// absent returns the error for a directory that the storage pool does not find: it may have been
// removed since.
func (f *filesystem) absent(p string) error {
	if err := f.there(p); err != nil {
		return err
	}
	return status.Errorf(codes.FailedPrecondition, "the directory at %s is not %s of the Gluster volume %s in the storage pool", f.Path(), f.root, f.pool.volume)
}

// limit replaces the limits of a scope.
func (f *filesystem) limit(ctx context.Context, scope string, limit *pb.Limit) error {
	err := f.pool.limit(ctx, ofBytes, f.at(scope), limit.Bytes)
	if err != nil || !f.inodes {
		return err
	}
	var objects *int64
	if limit.Inodes != nil {
		n := *limit.Inodes + itself
		objects = &n
	}
	return f.pool.limit(ctx, ofObjects, f.at(scope), objects)
}

// CreateScope implements driver.Volume.
func (f *filesystem) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	if err := f.MakeScope(scope); err != nil || !f.quota {
		return err
	}
	return f.limit(ctx, scope, limit)
}

// GetScope implements driver.Volume.
func (f *filesystem) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	if err := f.there(scope); err != nil {
		return nil, err
	}
	out := &pb.Scope{Limit: &pb.Limit{}}
	if !f.quota {
		f.walk.Fill(ctx, out, scope)
		return out, nil
	}
	bytes, ok, err := f.pool.list(ctx, ofBytes.list, f.at(scope))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, f.absent(scope)
	}
	out.Limit.Bytes, out.UsedBytes = bytes.Limit.int64, bytes.Used.int64
	if !f.inodes {
		return out, nil
	}
	objects, _, err := f.pool.list(ctx, ofObjects.list, f.at(scope))
	if err != nil {
		return nil, err
	}
	if objects.Limit.int64 != nil {
		n := *objects.Limit.int64 - itself
		out.Limit.Inodes = &n
	}
	if objects.Files.int64 != nil {
		n := *objects.Files.int64 + objects.Directories.or(itself) - itself
		out.UsedInodes = &n
	}
	return out, nil
}

// SetScopeLimit implements driver.Volume.
func (f *filesystem) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	if err := f.there(scope); err != nil {
		return err
	}
	return f.limit(ctx, scope, limit)
}

// DeleteScope implements driver.Volume. It removes the limits first, because those of a deleted
// directory would stay in the volume's list forever, and restores them if the directory cannot be
// removed.
func (f *filesystem) DeleteScope(ctx context.Context, scope string) error {
	if err := f.EmptyScope(scope); err != nil {
		return err
	}
	if !f.quota {
		return f.remove(scope)
	}
	was, err := f.GetScope(ctx, scope)
	switch status.Code(driver.Error("", err)) {
	case codes.OK:
		err = f.limit(ctx, scope, &pb.Limit{})
	case codes.NotFound:
		return nil
	case codes.FailedPrecondition: // there are no limits: quotas were disabled, or the directory is on another volume
		return f.remove(scope)
	}
	if err != nil {
		return err
	}
	if err := f.remove(scope); err != nil {
		return errors.Join(err, f.limit(ctx, scope, was.Limit))
	}
	return nil
}

func (f *filesystem) remove(scope string) error {
	f.walk.Forget(scope)
	return f.RemoveScope(scope)
}

// TreeUsage implements driver.Measurer: with quotas, Gluster accounts the usage of every directory.
func (f *filesystem) TreeUsage(ctx context.Context, tree string) (*pb.TreeUsageReport, error) {
	if strings.ContainsFunc(strings.ToValidUTF8(tree, "\x00"), func(r rune) bool { return r < ' ' }) {
		return f.measure(ctx, tree) // XML cannot express such names
	}
	bytes, ok, err := f.pool.list(ctx, ofBytes.list, f.at(tree))
	if err == nil && !ok {
		return nil, f.absent(tree)
	}
	if err != nil {
		return nil, err
	}
	objects, _, err := f.pool.list(ctx, ofObjects.list, f.at(tree))
	if err != nil {
		return nil, err
	}
	return &pb.TreeUsageReport{Bytes: bytes.Used.or(0), Files: objects.Files.or(0), Directories: objects.Directories.or(itself) - itself}, nil
}

// measure walks the tree.
func (f *filesystem) measure(ctx context.Context, tree string) (*pb.TreeUsageReport, error) {
	d, err := f.OpenTree(tree)
	if err != nil {
		return nil, err
	}
	return volume.UsageAt(ctx, d)
}
