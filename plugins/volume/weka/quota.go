package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// unlimited is the limit of a quota that only accounts usage. A directory without a quota can get
// one later only if it is empty, so every scope has one.
const unlimited = math.MaxInt64

// slack is the tolerance for the cluster's rounding of unlimited.
const slack = 1 << 20

type quota struct {
	Path   string `json:"path"`
	Used   int64  `json:"total_bytes"`
	Hard   *int64 `json:"hard_limit_bytes"`
	Status string `json:"status"` // ADDING, ACTIVE, DELETING, ERROR
}

// fill copies a quota's values to a scope.
func (q *quota) fill(out *pb.Scope) {
	if q.Hard != nil && *q.Hard > 0 && *q.Hard < unlimited-slack {
		out.Limit.Bytes = q.Hard
	}
	used := q.Used
	out.UsedBytes, out.Exact = &used, q.Status == "ACTIVE"
}

// inside returns the path of a scope in the file system.
func (f *filesystem) inside(scope string) string { return path.Join(f.options.Path, scope) }

// resolve returns the inode number of a scope's directory.
func (f *filesystem) resolve(ctx context.Context, scope string) (string, error) {
	out, err := get[struct {
		Inode json.Number `json:"inode_id"` // text, or a number
	}](ctx, f, f.at+"/resolvePath", url.Values{"path": {f.inside(scope)}})
	absent := rest.IsStatus(err, http.StatusNotFound) || err != nil && strings.Contains(err.Error(), "PATH_NOT_FOUND")
	if absent || err == nil && out.Inode == "" {
		return "", status.Errorf(codes.FailedPrecondition, "file system %s has no directory %s; check which file system is mounted", f.options.Filesystem, f.inside(scope))
	}
	return out.Inode.String(), err
}

func (f *filesystem) quotaPath(inode string) string { return f.at + "/quota/" + inode }

// quota returns the quota of an inode, or nil if there is none, which is an error or an empty
// response depending on the release.
func (f *filesystem) quota(ctx context.Context, inode string) (*quota, error) {
	q, err := get[*quota](ctx, f, f.quotaPath(inode), nil)
	if none(err) || q == nil || q.Status == "" && q.Hard == nil {
		return nil, ignore(err, none)
	}
	return q, err
}

func none(err error) bool {
	return err != nil && (rest.IsStatus(err, http.StatusNotFound) || strings.Contains(err.Error(), "Directory has no quota"))
}

func ignore(err error, which func(error) bool) error {
	if which(err) {
		return nil
	}
	return err
}

// quotas returns all quotas of the file system, page by page.
func (f *filesystem) quotas(ctx context.Context) iter.Seq2[quota, error] {
	type page struct {
		Data []quota `json:"data"`
		Next string  `json:"next_token"`
	}
	next := func(p *page, _ *rest.Response) (*rest.Request, error) {
		if p.Next == "" {
			return nil, nil
		}
		return &rest.Request{Path: f.at + "/quota", Query: url.Values{"next_token": {p.Next}}}, nil
	}
	return rest.All(ctx, f.client, rest.Request{Path: f.at + "/quota"}, func(p *page) []quota { return p.Data }, next)
}

// limit sets a quota on a scope and waits until it is effective.
func (f *filesystem) limit(ctx context.Context, scope string, limit *pb.Limit) error {
	bytes := int64(unlimited)
	if limit.Bytes != nil {
		bytes = *limit.Bytes
	}
	inode, err := f.resolve(ctx, scope)
	if err != nil {
		return err
	}
	body := map[string]any{"path": f.inside(scope), "hard_limit_bytes": bytes, "soft_limit_bytes": bytes, "grace_seconds": 0}
	_, err = f.client.Do(ctx, rest.Request{Method: http.MethodPut, Path: f.quotaPath(inode), Body: body})
	if err != nil {
		return f.refused(ctx, scope, inode, err)
	}
	return rest.Poll(ctx, "quota of "+scope, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		q, err := f.quota(ctx, inode)
		switch {
		case err != nil || q == nil:
			return false, err
		case q.Status == "ERROR":
			return false, f.client.Failed("quota of "+scope, q.Status, "the cluster could not count the contents of the directory")
		}
		return q.Status == "ACTIVE", nil
	})
}

// refused explains the error for a directory with files and without a quota.
func (f *filesystem) refused(ctx context.Context, scope, inode string, err error) error {
	var e *rest.Error
	if !errors.As(err, &e) || e.Busy() || e.Status == http.StatusForbidden || f.EmptyScope(scope) == nil {
		return fmt.Errorf("set quota: %w", err)
	}
	if have, qerr := f.quota(ctx, inode); have != nil || qerr != nil {
		return fmt.Errorf("set quota: %w", err)
	}
	return status.Errorf(codes.FailedPrecondition,
		"scope %s has files and was created without a quota: the cluster counts them only with its data service, or after weka fs quota set: %s", scope, e.Message)
}

// drop deletes the quota of a deleted directory. The cluster does so too, and a remaining one has
// no effect, because its inode number is not reused.
func (f *filesystem) drop(ctx context.Context, inode string) error {
	_, err := f.client.Do(ctx, rest.Request{Method: http.MethodDelete, Path: f.quotaPath(inode)})
	return ignore(err, func(err error) bool { return err != nil && status.Code(driver.Error("", err)) != codes.Unavailable })
}
