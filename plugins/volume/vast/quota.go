package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

type quota struct {
	ID    int64  `json:"id"`
	Path  string `json:"path"`
	Hard  *int64 `json:"hard_limit"` // 0 and null mean none
	Files *int64 `json:"hard_limit_inodes"`
	Used  *int64 `json:"used_capacity"`
	Count *int64 `json:"used_inodes"`
	Sync  string `json:"sync_state"`
}

// synchronized reports whether the existing contents have been counted; the quota is effective
// after that. Older versions do not report this.
func (q *quota) synchronized() bool { return q.Sync == "" || q.Sync == "SYNCHRONIZED" }

// fill copies a quota's values to a scope.
func (q *quota) fill(out *pb.Scope) {
	some := func(n *int64) *int64 {
		if n == nil || *n == 0 {
			return nil
		}
		return n
	}
	out.Limit.Bytes, out.Limit.Inodes = some(q.Hard), some(q.Files)
	out.UsedBytes, out.UsedInodes, out.Exact = q.Used, q.Count, q.Used != nil && q.synchronized()
}

// quota returns the quota of a path, or nil.
func (v *view) quota(ctx context.Context, at string) (*quota, error) {
	for q, err := range all[quota](ctx, v, quotas, url.Values{"path": {path.Clean(at)}, "tenant_id": {strconv.FormatInt(v.tenant, 10)}}) {
		if err != nil {
			return nil, err
		}
		if path.Clean(q.Path) == path.Clean(at) {
			return &q, nil
		}
	}
	return nil, nil
}

func one(id int64) string { return quotas + strconv.FormatInt(id, 10) + "/" }

// limit creates or changes a scope's quota and waits until it is effective. A scope without limits
// has a quota as well, for accounting.
func (v *view) limit(ctx context.Context, scope string, limit *pb.Limit) error {
	at := v.inside(scope)
	have, err := v.quota(ctx, at)
	if err != nil {
		return err
	}
	body := map[string]any{"hard_limit": limit.Bytes}
	if v.options.FileLimits {
		body["hard_limit_inodes"] = limit.Inodes
	}
	if have == nil {
		body["name"], body["path"], body["tenant_id"], body["create_dir"] = "berth-"+scope, at, v.tenant, false
		_, failed := v.client.Do(ctx, rest.Request{Method: http.MethodPost, Path: quotas, Body: body, Again: true})
		// Another proxy may have created it, or an earlier response was lost.
		if have, err = v.quota(ctx, at); err != nil {
			return err
		}
		if have == nil && failed != nil {
			return fmt.Errorf("make quota: %w", failed)
		}
		if failed == nil {
			return v.wait(ctx, scope)
		}
		for _, name := range []string{"name", "path", "tenant_id", "create_dir"} {
			delete(body, name)
		}
	}
	if _, err := v.client.Do(ctx, rest.Request{Method: http.MethodPatch, Path: one(have.ID), Body: body, Again: true}); err != nil {
		return fmt.Errorf("change quota: %w", err)
	}
	return v.wait(ctx, scope)
}

func (v *view) wait(ctx context.Context, scope string) error {
	return rest.Poll(ctx, "quota of "+scope, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		q, err := v.quota(ctx, v.inside(scope))
		return q != nil && q.synchronized(), err
	})
}

// drop deletes the quota of a deleted scope.
func (v *view) drop(ctx context.Context, scope string) error {
	have, err := v.quota(ctx, v.inside(scope))
	if have == nil || err != nil {
		return err
	}
	_, err = v.client.Do(ctx, rest.Request{Method: http.MethodDelete, Path: one(have.ID)})
	if rest.IsStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}
