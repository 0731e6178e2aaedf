package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

const qtrees = "/api/storage/qtrees"

type name struct {
	Name string `json:"name"`
}

type id struct {
	UUID string `json:"uuid"`
}

type qtree struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

// find returns a scope's qtree, or nil.
func (f *flexvol) find(ctx context.Context, scope string) (*qtree, error) {
	for q, err := range all[qtree](ctx, f, qtrees, query("volume.uuid", f.uuid, "name", scope, "fields", "id,name")) {
		if err != nil {
			return nil, err
		}
		if q.Name == scope {
			return &q, nil
		}
	}
	return nil, nil
}

// CreateScope implements driver.Volume.
func (f *flexvol) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	have, err := f.find(ctx, scope)
	if err != nil {
		return err
	}
	if have == nil {
		if err := f.create(ctx, scope); err != nil {
			return err
		}
	}
	if limit.Bytes == nil && limit.Inodes == nil {
		return nil
	}
	return f.SetScopeLimit(ctx, scope, limit)
}

func (f *flexvol) create(ctx context.Context, scope string) error {
	d, err := f.OpenTree(scope)
	if err == nil {
		d.Close()
		return status.Errorf(codes.FailedPrecondition, "%s is a plain directory, and only a qtree has limits", scope)
	}
	if status.Code(err) != codes.NotFound {
		return err
	}
	body := map[string]any{
		"svm": name{f.options.SVM}, "volume": id{f.uuid}, "name": scope,
		"security_style": "unix", "unix_permissions": 755, // as people read it
	}
	if f.options.ExportPolicy != "" {
		body["export_policy"] = name{f.options.ExportPolicy}
	}
	failed := f.change(ctx, http.MethodPost, qtrees, body)
	if failed != nil {
		// Another proxy may have created it, or an earlier response was lost.
		if have, err := f.find(ctx, scope); have == nil || err != nil {
			return fmt.Errorf("create qtree %s: %w", scope, failed)
		}
	}
	// The qtree becomes visible in the list and over NFS with a delay.
	return rest.Poll(ctx, "qtree "+scope+" to appear", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		have, err := f.find(ctx, scope)
		if err != nil || have == nil {
			return false, err
		}
		d, err := f.OpenTree(scope)
		if status.Code(err) == codes.NotFound {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, d.Close()
	})
}

// GetScope implements driver.Volume.
func (f *flexvol) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	have, err := f.find(ctx, scope)
	if err != nil {
		return nil, err
	}
	if have == nil {
		return nil, status.Errorf(codes.NotFound, "the volume has no qtree %s", scope)
	}
	out := &pb.Scope{Limit: &pb.Limit{}}
	if f.reason != "" {
		return out, nil
	}
	r, err := f.rule(ctx, scope)
	if err != nil {
		return nil, err
	}
	if r != nil {
		out.Limit.Bytes, out.Limit.Inodes = r.Space.Hard, r.Files.Hard
	}
	return out, f.usage(ctx, scope, out)
}

// SetScopeLimit implements driver.Volume.
func (f *flexvol) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	have, err := f.find(ctx, scope)
	if err != nil {
		return err
	}
	if have == nil {
		return status.Errorf(codes.NotFound, "the volume has no qtree %s", scope)
	}
	return f.limit(ctx, scope, limit)
}

// possible checks that a rule can express the limit: zero is not allowed.
func possible(limit *pb.Limit) error {
	switch {
	case limit.Bytes != nil && *limit.Bytes == 0:
		return status.Error(codes.InvalidArgument, "limit.bytes: ONTAP does not support a limit of zero; the smallest is 1024")
	case limit.Inodes != nil && *limit.Inodes == 0:
		return status.Error(codes.InvalidArgument, "limit.inodes: ONTAP does not support a limit of zero")
	}
	return nil
}

// DeleteScope implements driver.Volume. The array would remove a qtree with its contents, so the
// scope must be verified to be empty first.
func (f *flexvol) DeleteScope(ctx context.Context, scope string) error {
	have, err := f.find(ctx, scope)
	if err != nil {
		return err
	}
	if have == nil {
		if err := f.RemoveScope(scope); err != nil {
			return err
		}
		return f.dropRule(ctx, scope)
	}
	if err := f.EmptyScope(scope); err != nil {
		return err
	}
	err = f.change(ctx, http.MethodDelete, qtrees+"/"+f.uuid+"/"+strconv.Itoa(have.ID), nil)
	if err != nil && !rest.IsStatus(err, http.StatusNotFound) {
		return fmt.Errorf("delete qtree %s: %w", scope, err)
	}
	err = rest.Poll(ctx, "qtree "+scope+" to go", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		have, err := f.find(ctx, scope)
		return have == nil, err
	})
	if err != nil {
		return err
	}
	return f.dropRule(ctx, scope)
}

// ListScopes implements driver.Lister.
func (f *flexvol) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	return func(yield func(*pb.Scope, error) bool) {
		for q, err := range all[qtree](ctx, f, qtrees, query("volume.uuid", f.uuid, "fields", "id,name")) {
			if err != nil {
				yield(nil, err)
				return
			}
			if driver.IsScope(q.Name) && !yield(&pb.Scope{Scope: q.Name}, nil) {
				return
			}
		}
	}
}
