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

// unlimited is a quota that only counts. A directory that was never counted
// cannot be limited later unless it is empty, so that every scope has one.
const unlimited = math.MaxInt64

// slack is how near to unlimited a limit is rounded by the cluster.
const slack = 1 << 20

type quota struct {
	Path   string `json:"path"`
	Used   int64  `json:"total_bytes"`
	Hard   *int64 `json:"hard_limit_bytes"`
	Status string `json:"status"` // ADDING, ACTIVE, DELETING, ERROR
}

// fill puts into a scope what a quota says.
func (q *quota) fill(out *pb.Scope) {
	if q.Hard != nil && *q.Hard > 0 && *q.Hard < unlimited-slack {
		out.Limit.Bytes = q.Hard
	}
	used := q.Used
	out.UsedBytes, out.Exact = &used, q.Status == "ACTIVE"
}

// inside is the path of a scope in the file system.
func (f *filesystem) inside(scope string) string { return path.Join(f.options.Path, scope) }

// resolve asks for the inode number of a scope's directory.
func (f *filesystem) resolve(ctx context.Context, scope string) (string, error) {
	out, err := get[struct {
		Inode json.Number `json:"inode_id"` // text, or a number
	}](ctx, f, f.at+"/resolvePath", url.Values{"path": {f.inside(scope)}})
	absent := rest.IsStatus(err, http.StatusNotFound) || err != nil && strings.Contains(err.Error(), "PATH_NOT_FOUND")
	if absent || err == nil && out.Inode == "" {
		return "", status.Errorf(codes.FailedPrecondition, "file system %s has no directory %s: is another one mounted?", f.options.Filesystem, f.inside(scope))
	}
	return out.Inode.String(), err
}

func (f *filesystem) quotaPath(inode string) string { return f.at + "/quota/" + inode }

// quota asks for the one of an inode; nil when there is none, which is an error or an
// empty answer, as the release has it.
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

// quotas lists all of the file system, page by page.
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

// limit puts a quota on a scope and waits until it holds.
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
			return false, f.client.Failed("quota of "+scope, q.Status, "the cluster could not count what is in the directory")
		}
		return q.Status == "ACTIVE", nil
	})
}

// refused says what is the matter with a directory that has files and no quota.
func (f *filesystem) refused(ctx context.Context, scope, inode string, err error) error {
	var e *rest.Error
	if !errors.As(err, &e) || e.Busy() || e.Status == http.StatusForbidden || f.EmptyScope(scope) == nil {
		return fmt.Errorf("set quota: %w", err)
	}
	if have, qerr := f.quota(ctx, inode); have != nil || qerr != nil {
		return fmt.Errorf("set quota: %w", err)
	}
	return status.Errorf(codes.FailedPrecondition,
		"scope %s has files and was made without a quota: the cluster counts it only with its data service, or by weka fs quota set: %s", scope, e.Message)
}

// drop forgets the quota of a directory that is gone. The cluster does so too, and one
// that stays holds for nothing: its inode number does not come again.
func (f *filesystem) drop(ctx context.Context, inode string) error {
	_, err := f.client.Do(ctx, rest.Request{Method: http.MethodDelete, Path: f.quotaPath(inode)})
	return ignore(err, func(err error) bool { return err != nil && status.Code(driver.Error("", err)) != codes.Unavailable })
}
