package main

import (
	"context"
	"iter"
	"path"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// CreateScope implements driver.Volume.
func (f *filesystem) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	if err := f.MakeScope(scope); err != nil || f.reason != "" {
		return err
	}
	return f.limit(ctx, scope, limit)
}

// GetScope implements driver.Volume.
func (f *filesystem) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	d, err := f.OpenTree(scope)
	if err != nil {
		return nil, err
	}
	out := &pb.Scope{Limit: &pb.Limit{}}
	if err := d.Close(); err != nil || f.reason != "" {
		return out, err
	}
	inode, err := f.resolve(ctx, scope)
	if err != nil {
		return nil, err
	}
	q, err := f.quota(ctx, inode)
	if q != nil {
		q.fill(out)
	}
	return out, err
}

// SetScopeLimit implements driver.Volume.
func (f *filesystem) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	d, err := f.OpenTree(scope)
	if err != nil {
		return err
	}
	if err := d.Close(); err != nil {
		return err
	}
	return f.limit(ctx, scope, limit)
}

// possible rejects zero, which WEKA takes to mean unlimited.
func possible(limit *pb.Limit) error {
	switch {
	case limit.Bytes != nil && *limit.Bytes == 0:
		return status.Error(codes.InvalidArgument, "limit.bytes: WEKA does not support a limit of zero")
	case limit.Bytes != nil && *limit.Bytes >= unlimited-slack:
		return status.Error(codes.InvalidArgument, "limit.bytes: for WEKA, this means no limit")
	}
	return nil
}

// DeleteScope implements driver.Volume. The directory is removed first, which succeeds only if it
// is empty.
func (f *filesystem) DeleteScope(ctx context.Context, scope string) error {
	d, err := f.OpenTree(scope)
	if status.Code(driver.Error("", err)) == codes.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if err := d.Close(); err != nil {
		return err
	}
	if f.reason != "" {
		return f.RemoveScope(scope)
	}
	inode, err := f.resolve(ctx, scope)
	if err != nil {
		return err
	}
	if err := f.RemoveScope(scope); err != nil {
		return err
	}
	return f.drop(ctx, inode)
}

// ListScopes implements driver.Lister. It returns the directories with the values from the list of
// quotas.
func (f *filesystem) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	return func(yield func(*pb.Scope, error) bool) {
		known := map[string]quota{}
		if f.reason == "" {
			for q, err := range f.quotas(ctx) {
				if err != nil {
					yield(nil, err)
					return
				}
				known[path.Clean(q.Path)] = q
			}
		}
		for s, err := range f.Mount.ListScopes(ctx) {
			if err == nil {
				if q, ok := known[f.inside(s.Scope)]; ok {
					s.Limit = &pb.Limit{}
					q.fill(s)
				}
			}
			if !yield(s, err) {
				return
			}
		}
	}
}
