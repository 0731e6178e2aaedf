package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// quota is the quota of a directory.
type quota struct {
	ID         string     `json:"id"`
	Path       string     `json:"path"`
	Ready      bool       `json:"ready"` // false: a QuotaScan job must count first
	Enforced   bool       `json:"enforced"`
	Thresholds thresholds `json:"thresholds"`
	Usage      struct {
		Inodes          int64  `json:"inodes"` // including the directory itself
		FSLogical       *int64 `json:"fslogical"`
		FSLogicalReady  *bool  `json:"fslogical_ready"`
		AppLogical      *int64 `json:"applogical"`
		AppLogicalReady *bool  `json:"applogical_ready"`
		Physical        *int64 `json:"physical"`
		PhysicalReady   *bool  `json:"physical_ready"`
		Logical         *int64 `json:"logical"` // in versions before thresholds_on
	} `json:"usage"`
}

// thresholds are the limits of a quota; null removes one.
type thresholds struct {
	Hard *int64 `json:"hard"`
}

// list returns the quotas of all pages. A page after the first is requested by its token only.
func (v *volume) list(ctx context.Context, q url.Values) iter.Seq2[quota, error] {
	type page struct {
		Quotas []quota `json:"quotas"`
		Resume *string `json:"resume"`
	}
	next := func(p *page, _ *rest.Response) (*rest.Request, error) {
		if p.Resume == nil || *p.Resume == "" {
			return nil, nil
		}
		return &rest.Request{Path: v.quotas, Query: url.Values{"resume": {*p.Resume}}}, nil
	}
	return rest.All(ctx, v.client, rest.Request{Path: v.quotas, Query: q}, func(p *page) []quota { return p.Quotas }, next)
}

func (v *volume) at(scope string) string { return v.options.Path + "/" + scope }

// find returns a scope's quota, or nil if there is no quota or no directory.
func (v *volume) find(ctx context.Context, scope string) (*quota, error) {
	for q, err := range v.list(ctx, url.Values{"path": {v.at(scope)}, "type": {"directory"}}) {
		if rest.IsStatus(err, http.StatusNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if q.Path == v.at(scope) {
			return &q, nil
		}
	}
	return nil, nil
}

// ensure creates a scope's quota, or sets the limit of the existing one.
func (v *volume) ensure(ctx context.Context, scope string, limit *pb.Limit) error {
	have, err := v.find(ctx, scope)
	if err != nil {
		return err
	}
	if have == nil {
		failed := v.create(ctx, scope, limit)
		if failed == nil {
			return nil
		}
		// Another proxy may have created it, or an earlier response was lost.
		if have, err = v.find(ctx, scope); have == nil || err != nil {
			return fmt.Errorf("create a quota for %s: %w", scope, failed)
		}
	}
	_, err = v.client.Do(ctx, rest.Request{
		Method: http.MethodPut, Path: v.quotas + "/" + url.PathEscape(have.ID),
		Body: v.bound(limit),
	})
	if err != nil {
		return fmt.Errorf("limit %s: %w", scope, err)
	}
	return nil
}

// create creates a quota; without a limit it only accounts usage.
func (v *volume) create(ctx context.Context, scope string, limit *pb.Limit) error {
	body := v.bound(limit)
	body["path"], body["type"], body["include_snapshots"] = v.at(scope), "directory", false
	if v.modern {
		body["thresholds_on"] = v.options.Measure
	} else {
		body["thresholds_include_overhead"] = v.options.Measure == "physicalsize"
	}
	_, err := v.client.Do(ctx, rest.Request{Method: http.MethodPost, Path: v.quotas, Body: body, Again: true})
	return err
}

// bound converts a limit to fields of a quota.
func (v *volume) bound(limit *pb.Limit) map[string]any {
	return map[string]any{
		"enforced": limit.Bytes != nil, "thresholds": thresholds{limit.Bytes},
		"container": v.options.Container && limit.Bytes != nil,
	}
}

// drop deletes a quota; a missing one is not an error.
func (v *volume) drop(ctx context.Context, q *quota) error {
	_, err := v.client.Do(ctx, rest.Request{Method: http.MethodDelete, Path: v.quotas + "/" + url.PathEscape(q.ID)})
	if rest.IsStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// fill copies a quota's values to its scope.
func (v *volume) fill(out *pb.Scope, q *quota) {
	if q.Enforced {
		out.Limit.Bytes = q.Thresholds.Hard
	}
	used, ready := q.Usage.FSLogical, q.Usage.FSLogicalReady
	switch {
	case v.options.Measure == "physicalsize":
		used, ready = q.Usage.Physical, q.Usage.PhysicalReady
	case !v.modern:
		used, ready = q.Usage.Logical, nil
	case v.options.Measure == "applogicalsize":
		used, ready = q.Usage.AppLogical, q.Usage.AppLogicalReady
	}
	inodes := max(q.Usage.Inodes-1, 0)
	out.UsedBytes, out.UsedInodes = used, &inodes
	out.Exact = used != nil && q.Ready && (ready == nil || *ready)
}

// possible checks that a quota can express the limit.
func possible(limit *pb.Limit) error {
	if limit.Bytes != nil && *limit.Bytes == 0 {
		return status.Error(codes.InvalidArgument, "limit.bytes: OneFS does not support a limit of zero")
	}
	return nil
}
