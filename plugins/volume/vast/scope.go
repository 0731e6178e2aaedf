package main

import (
	"context"
	"iter"
	"net/url"
	"path"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// CreateScope implements driver.Volume.
func (v *view) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	if err := v.MakeScope(scope); err != nil || v.reason != "" {
		return err
	}
	return v.limit(ctx, scope, limit)
}

// GetScope implements driver.Volume.
func (v *view) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	out := &pb.Scope{Limit: &pb.Limit{}}
	if err := v.exists(scope); err != nil || v.reason != "" {
		return out, err
	}
	q, err := v.quota(ctx, v.inside(scope))
	if q != nil {
		q.fill(out)
	}
	return out, err
}

func (v *view) exists(scope string) error {
	d, err := v.OpenTree(scope)
	if err != nil {
		return err
	}
	return d.Close()
}

// SetScopeLimit implements driver.Volume.
func (v *view) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	if err := v.exists(scope); err != nil {
		return err
	}
	return v.limit(ctx, scope, limit)
}

// possible checks that a quota can express the limit: zero would mean unlimited.
func possible(limit *pb.Limit) error {
	switch {
	case limit.Bytes != nil && *limit.Bytes == 0:
		return status.Error(codes.InvalidArgument, "limit.bytes: VAST does not support a limit of zero")
	case limit.Inodes != nil && *limit.Inodes == 0:
		return status.Error(codes.InvalidArgument, "limit.inodes: VAST does not support a limit of zero")
	}
	return nil
}

// DeleteScope implements driver.Volume. The directory is removed first, which succeeds only if it
// is empty.
func (v *view) DeleteScope(ctx context.Context, scope string) error {
	if err := v.RemoveScope(scope); err != nil || v.reason != "" {
		return err
	}
	return v.drop(ctx, scope)
}

// ListScopes implements driver.Lister. It returns the directories with the values from the list of
// quotas.
func (v *view) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	return func(yield func(*pb.Scope, error) bool) {
		known := map[string]quota{}
		if v.reason == "" {
			q := url.Values{"tenant_id": {strconv.FormatInt(v.tenant, 10)}, "page_size": {"500"}}
			for q, err := range all[quota](ctx, v, quotas, q) {
				if err != nil {
					yield(nil, err)
					return
				}
				known[path.Clean(q.Path)] = q
			}
		}
		for s, err := range v.Mount.ListScopes(ctx) {
			if err == nil {
				if q, ok := known[v.inside(s.Scope)]; ok {
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
