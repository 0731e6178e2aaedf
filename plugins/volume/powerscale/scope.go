package main

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"path"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// CreateScope implements driver.Volume. The quota is created while the directory is empty: later
// the cluster would have to scan it in a job first.
func (v *volume) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	if err := v.MakeScope(scope); err != nil || v.reason != "" {
		return err
	}
	return v.ensure(ctx, scope, limit)
}

// GetScope implements driver.Volume.
func (v *volume) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	d, err := v.OpenTree(scope)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out := &pb.Scope{Limit: &pb.Limit{}}
	var q *quota
	if v.reason == "" {
		if q, err = v.find(ctx, scope); err != nil {
			return nil, err
		}
	}
	if q == nil { // no quota, so measure it
		v.walk.Fill(ctx, out, scope)
		return out, nil
	}
	v.fill(out, q)
	return out, nil
}

// SetScopeLimit implements driver.Volume.
func (v *volume) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	d, err := v.OpenTree(scope)
	if err != nil {
		return err
	}
	defer d.Close()
	return v.ensure(ctx, scope, limit)
}

// DeleteScope implements driver.Volume. The quota is deleted first, because a directory with one
// may not be removable. It is restored if the directory stays.
func (v *volume) DeleteScope(ctx context.Context, scope string) error {
	if err := v.EmptyScope(scope); err != nil {
		return err
	}
	v.walk.Forget(scope)
	if v.reason != "" {
		return v.RemoveScope(scope)
	}
	q, err := v.find(ctx, scope)
	if err != nil {
		return err
	}
	if q != nil {
		if err := v.drop(ctx, q); err != nil {
			return err
		}
	}
	err = v.RemoveScope(scope)
	if err != nil && q != nil {
		limit := &pb.Limit{}
		if q.Enforced {
			limit.Bytes = q.Thresholds.Hard
		}
		return errors.Join(err, v.ensure(context.WithoutCancel(ctx), scope, limit))
	}
	return err
}

// ListScopes implements driver.Lister. It returns the directories with the values of their quotas.
func (v *volume) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	return func(yield func(*pb.Scope, error) bool) {
		quotas := map[string]*quota{}
		if v.reason == "" {
			all := v.list(ctx, url.Values{"path": {v.options.Path}, "type": {"directory"}, "recurse_path_children": {"true"}})
			for q, err := range all {
				if err != nil {
					yield(nil, err)
					return
				}
				if path.Dir(q.Path) == v.options.Path {
					quotas[path.Base(q.Path)] = &q
				}
			}
		}
		for s, err := range v.Mount.ListScopes(ctx) {
			if err == nil && quotas[s.Scope] != nil {
				s.Limit = &pb.Limit{}
				v.fill(s, quotas[s.Scope])
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}
