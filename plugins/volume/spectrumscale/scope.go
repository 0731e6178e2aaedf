package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// quota is a fileset's quota, with blocks in KiB. Blocks that nodes have taken and not reported yet
// are in doubt, and count as used.
type quota struct {
	Name         string `json:"objectName"`
	Type         string `json:"quotaType"`
	BlockUsage   int64  `json:"blockUsage"`
	BlockInDoubt int64  `json:"blockInDoubt"`
	BlockLimit   int64  `json:"blockLimit"` // 0 = none
	FilesUsage   int64  `json:"filesUsage"`
	FilesInDoubt int64  `json:"filesInDoubt"`
	FilesLimit   int64  `json:"filesLimit"`
}

const kib = 1024

// fill copies a quota's values to a scope.
func (q *quota) fill(out *pb.Scope) {
	some := func(n int64) *int64 {
		if n <= 0 {
			return nil
		}
		return &n
	}
	bytes, files := (q.BlockUsage+q.BlockInDoubt)*kib, q.FilesUsage+q.FilesInDoubt
	out.Limit.Bytes, out.Limit.Inodes = some(q.BlockLimit*kib), some(q.FilesLimit)
	out.UsedBytes, out.UsedInodes, out.Exact = &bytes, &files, q.BlockInDoubt == 0 && q.FilesInDoubt == 0
}

// quotas returns the quota of a fileset, or of all filesets if the name is empty.
func (f *filesystem) quotas(ctx context.Context, name string) iter.Seq2[quota, error] {
	filter := "quotaType=FILESET"
	if name != "" {
		filter += ",objectName=" + name
	}
	return all(ctx, f, f.at+"/quotas", url.Values{"filter": {filter}, "fields": {":all:"}}, func(l *list) *[]quota { return &l.Quotas })
}

// limit sets a scope's limits; 0 removes a limit.
func (f *filesystem) limit(ctx context.Context, scope string, limit *pb.Limit) error {
	text := func(n *int64) string {
		if n == nil {
			return "0"
		}
		return strconv.FormatInt(*n, 10)
	}
	body := map[string]string{
		"operationType": "setQuota", "quotaType": "fileset", "objectName": nameOf(scope),
		"blockHardLimit": text(limit.Bytes), "blockSoftLimit": text(limit.Bytes),
	}
	if f.options.FileLimits {
		body["filesHardLimit"], body["filesSoftLimit"] = text(limit.Inodes), text(limit.Inodes)
	}
	if err := f.change(ctx, http.MethodPost, f.at+"/quotas", body); err != nil {
		return fmt.Errorf("set quota: %w", err)
	}
	return nil
}

// CreateScope implements driver.Volume.
func (f *filesystem) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	if err := f.make(ctx, scope); err != nil {
		return err
	}
	if f.reason != "" {
		return nil
	}
	return f.limit(ctx, scope, limit)
}

// GetScope implements driver.Volume.
func (f *filesystem) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	out := &pb.Scope{Limit: &pb.Limit{}}
	if err := f.made(ctx, scope); err != nil || f.reason != "" {
		return out, err
	}
	for q, err := range f.quotas(ctx, nameOf(scope)) {
		if err != nil {
			return nil, err
		}
		if q.Name == nameOf(scope) {
			q.fill(out)
		}
	}
	return out, nil
}

// SetScopeLimit implements driver.Volume.
func (f *filesystem) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	if err := f.made(ctx, scope); err != nil {
		return err
	}
	return f.limit(ctx, scope, limit)
}

// possible checks that a quota can express the limit: zero would mean unlimited.
func possible(limit *pb.Limit) error {
	switch {
	case limit.Bytes != nil && *limit.Bytes == 0:
		return status.Error(codes.InvalidArgument, "limit.bytes: Storage Scale does not support a limit of zero")
	case limit.Inodes != nil && *limit.Inodes == 0:
		return status.Error(codes.InvalidArgument, "limit.inodes: Storage Scale does not support a limit of zero")
	}
	return nil
}

// DeleteScope implements driver.Volume. The cluster would delete a fileset with its contents, so
// the scope must be verified to be empty first.
func (f *filesystem) DeleteScope(ctx context.Context, scope string) error {
	if err := f.EmptyScope(scope); err != nil {
		return err
	}
	have, err := f.seen(ctx, scope)
	if err != nil {
		return err
	}
	if have == nil {
		return f.RemoveScope(scope)
	}
	return f.unmake(ctx, scope, have)
}

// ListScopes implements driver.Lister.
func (f *filesystem) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	return func(yield func(*pb.Scope, error) bool) {
		known := map[string]quota{}
		if f.reason == "" {
			for q, err := range f.quotas(ctx, "") {
				if err != nil {
					yield(nil, err)
					return
				}
				known[q.Name] = q
			}
		}
		sets := all(ctx, f, f.at+"/filesets", url.Values{"fields": {":all:"}}, func(l *list) *[]fileset { return &l.Filesets })
		for s, err := range sets {
			if err != nil {
				yield(nil, err)
				return
			}
			scope, ours := strings.CutPrefix(s.Name, nameOf(""))
			if !ours || !driver.IsScope(scope) || !s.linked() || path.Clean(s.Config.Path) != f.inside(scope) {
				continue
			}
			out := &pb.Scope{Scope: scope}
			if q, ok := known[s.Name]; ok {
				out.Limit = &pb.Limit{}
				q.fill(out)
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}
