package main

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

const (
	none   = -1 // no quota
	itself = 1  // the scope's directory counts in its own quota of names
)

// setQuota replaces both quotas of a path below the mount.
func (f *filesystem) setQuota(ctx context.Context, p string, names, space int64) error {
	q := url.Values{"namespacequota": {strconv.FormatInt(names, 10)}, "storagespacequota": {strconv.FormatInt(space, 10)}}
	return f.nodes.do(ctx, http.MethodPut, "SETQUOTA", f.inside(p), q, nil)
}

// quotas converts a limit to HDFS quotas: for all replicas, and including the directory itself.
func (f *filesystem) quotas(limit *pb.Limit) (names, space int64, err error) {
	names, space = none, none
	if limit.Bytes != nil {
		if *limit.Bytes > math.MaxInt64/f.replication-1 {
			return 0, 0, status.Errorf(codes.InvalidArgument, "limit.bytes: %d times %d replicas is more than HDFS can count", *limit.Bytes, f.replication)
		}
		space = *limit.Bytes * f.replication
	}
	if limit.Inodes != nil {
		if *limit.Inodes >= math.MaxInt64-itself {
			return 0, 0, status.Error(codes.InvalidArgument, "limit.inodes: more than HDFS can count")
		}
		names = *limit.Inodes + itself
	}
	return names, space, nil
}

func (f *filesystem) limit(ctx context.Context, scope string, limit *pb.Limit) error {
	names, space, err := f.quotas(limit)
	if err == nil {
		err = f.setQuota(ctx, scope, names, space)
	}
	return f.elsewhere(err)
}

// elsewhere returns the error for a directory that exists on the mount but not in HDFS.
func (f *filesystem) elsewhere(err error) error {
	if rest.IsStatus(err, http.StatusNotFound) {
		return status.Errorf(codes.FailedPrecondition, "the directory at %s is not %s of this HDFS", f.Mount.Path(), f.options.Path)
	}
	return err
}

// CreateScope implements driver.Volume.
func (f *filesystem) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	if _, _, err := f.quotas(limit); err != nil {
		return err
	}
	if err := f.MakeScope(scope); err != nil || f.reason != "" {
		return err
	}
	return f.limit(ctx, scope, limit)
}

// there checks that a directory exists on the mount.
func (f *filesystem) there(p string) error {
	d, err := f.OpenTree(p)
	if err != nil {
		return err
	}
	return d.Close()
}

// GetScope implements driver.Volume.
func (f *filesystem) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	if err := f.there(scope); err != nil {
		return nil, err
	}
	s, err := f.nodes.summary(ctx, f.inside(scope))
	if err != nil {
		if f.there(scope) != nil { // removed since
			return nil, err
		}
		return nil, f.elsewhere(err)
	}
	out := &pb.Scope{Limit: &pb.Limit{}, Exact: true}
	if s.Space >= 0 {
		bytes := s.Space / f.replication
		out.Limit.Bytes = &bytes
	}
	if s.Names >= itself {
		inodes := s.Names - itself
		out.Limit.Inodes = &inodes
	}
	used, inodes := f.one(s.Consumed), s.Files+s.Directories-itself
	out.UsedBytes, out.UsedInodes = &used, &inodes
	return out, nil
}

// one converts bytes of all replicas to those of one, as in a limit.
func (f *filesystem) one(consumed int64) int64 {
	return (consumed + f.replication - 1) / f.replication
}

// SetScopeLimit implements driver.Volume.
func (f *filesystem) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := f.there(scope); err != nil {
		return err
	}
	return f.limit(ctx, scope, limit)
}

// DeleteScope implements driver.Volume. The quotas are removed with the directory.
func (f *filesystem) DeleteScope(_ context.Context, scope string) error { return f.RemoveScope(scope) }

// TreeUsage implements driver.Measurer. The name node computes it in memory.
func (f *filesystem) TreeUsage(ctx context.Context, tree string) (*pb.TreeUsageReport, error) {
	s, err := f.nodes.summary(ctx, f.inside(tree))
	if err != nil {
		return nil, err
	}
	return &pb.TreeUsageReport{Bytes: f.one(s.Consumed), Files: s.Files, Directories: s.Directories - itself, Exact: true}, nil
}
