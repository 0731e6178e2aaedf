package main

import (
	"context"
	"errors"
	"iter"
	"math"
	"os"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// itself is the count of a scope's directory in its own max_files.
const itself = 1

const lacksP = "the client's key needs the capability p beside rw (ceph fs authorize … rwp), or set the option quota to false"

// CreateScope implements driver.Volume.
func (f *filesystem) CreateScope(_ context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	if err := f.MakeScope(scope); err != nil || f.reason != "" {
		return err
	}
	return f.limit(scope, limit)
}

// possible checks that a quota can express the limit: zero would mean unlimited. A limit of zero
// files is possible, because the scope's directory counts.
func possible(limit *pb.Limit) error {
	switch {
	case limit.Bytes != nil && *limit.Bytes == 0:
		return status.Error(codes.InvalidArgument, "limit.bytes: CephFS does not support a limit of zero")
	case limit.Inodes != nil && *limit.Inodes > math.MaxInt64-itself:
		return status.Error(codes.InvalidArgument, "limit.inodes: more than CephFS can count")
	}
	return nil
}

// limit replaces both limits.
func (f *filesystem) limit(scope string, limit *pb.Limit) error {
	d, err := f.OpenTree(scope)
	if err != nil {
		return err
	}
	defer d.Close()
	var most int64
	if limit.Inodes != nil {
		most = *limit.Inodes + itself
	}
	err = errors.Join(write(d, maxBytes, limit.GetBytes()), write(d, maxFiles, most))
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		f.denied.Store(true)
		return status.Errorf(codes.PermissionDenied, "set quota of %s: %s", scope, lacksP)
	}
	if err == nil {
		f.denied.Store(false)
	}
	return driver.Error("set quota of "+scope, err)
}

// GetScope implements driver.Volume.
func (f *filesystem) GetScope(_ context.Context, scope string) (*pb.Scope, error) {
	d, err := f.OpenTree(scope)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out := &pb.Scope{Scope: scope, Limit: &pb.Limit{}}
	if err := quota(d, out.Limit); err != nil {
		return nil, err
	}
	u, err := usage(d)
	if err != nil {
		return nil, err
	}
	inodes := u.Files + u.Directories
	out.UsedBytes, out.UsedInodes = &u.Bytes, &inodes
	return out, nil
}

func quota(d *os.File, into *pb.Limit) error {
	n, there, err := read(d, maxBytes)
	if err != nil {
		return err
	}
	if there && n > 0 {
		into.Bytes = &n
	}
	most, there, err := read(d, maxFiles)
	if err != nil {
		return err
	}
	if there && most > 0 {
		most -= itself
		into.Inodes = &most
	}
	return nil
}

// usage returns the metadata server's statistics. Changes below a directory reach its statistics
// with a delay, so they are never marked as exact.
func usage(d *os.File) (*pb.TreeUsageReport, error) {
	var u pb.TreeUsageReport
	for name, into := range map[string]*int64{bytes: &u.Bytes, files: &u.Files, subdirs: &u.Directories} {
		n, err := count(d, name)
		if err != nil {
			return nil, err
		}
		*into = n
	}
	u.Directories = max(u.Directories-itself, 0)
	return &u, nil
}

// TreeUsage implements driver.Measurer.
func (f *filesystem) TreeUsage(_ context.Context, tree string) (*pb.TreeUsageReport, error) {
	d, err := f.OpenTree(tree)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return usage(d)
}

// SetScopeLimit implements driver.Volume.
func (f *filesystem) SetScopeLimit(_ context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	return f.limit(scope, limit)
}

// DeleteScope implements driver.Volume. The quota is removed with the directory.
func (f *filesystem) DeleteScope(_ context.Context, scope string) error {
	return f.RemoveScope(scope)
}

// ListScopes also returns limits and usage, which the client has mostly cached.
func (f *filesystem) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	return func(yield func(*pb.Scope, error) bool) {
		for s, err := range f.Mount.ListScopes(ctx) {
			if err == nil {
				s, err = f.GetScope(ctx, s.Scope)
			}
			if status.Code(driver.Error("", err)) == codes.NotFound { // removed since
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}
