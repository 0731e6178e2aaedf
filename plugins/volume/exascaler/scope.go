package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/xfs/prjquota"
)

// rootInode is the scope's own directory, which the servers count and Berth does not.
const rootInode = 1

// attempts limits the search for an unused project id.
const attempts = 32

func (v *volume) at(scope string) string { return filepath.Join(v.Path(), scope) }

// project returns the project of a scope, and assigns one to an empty scope. The servers' usage is
// the only register of project ids, so it is correct after a crash and includes other volumes.
func (v *volume) project(ctx context.Context, d *os.File, scope string) (prjquota.ID, error) {
	id, err := v.of(ctx, d, v.at(scope))
	if id != 0 || err != nil {
		return id, err
	}
	if _, err := d.Readdirnames(1); !errors.Is(err, io.EOF) {
		return 0, status.Errorf(codes.FailedPrecondition,
			"scope %s has files that were written without a project and are not counted: copy its folders to a new scope", scope)
	}
	for n := range attempts {
		id := prjquota.Candidate(scope, n)
		q, err := v.quota(ctx, id)
		if err != nil {
			return 0, err
		}
		if q.inodes > 0 || q.kib > 0 {
			// Another proxy may be creating the same scope.
			if now, err := v.of(ctx, d, v.at(scope)); now == id || err != nil {
				return now, err
			}
			continue
		}
		if err := v.assign(ctx, d, v.at(scope), id); err != nil {
			return 0, err
		}
		if q, err = v.quota(ctx, id); err != nil {
			return 0, err
		}
		if q.inodes <= rootInode {
			return id, nil
		}
	}
	return 0, status.Errorf(codes.ResourceExhausted, "scope %s: all of %d project numbers are taken", scope, attempts)
}

// kib converts a limit to Lustre's units, in which 0 means unlimited.
func kib(limit *pb.Limit) (blocks, inodes int64, err error) {
	if limit.Bytes != nil {
		if *limit.Bytes == 0 {
			return 0, 0, status.Error(codes.InvalidArgument, "limit.bytes: for Lustre, zero means no limit")
		}
		blocks = (*limit.Bytes-1)/1024 + 1
	}
	if limit.Inodes != nil {
		inodes = *limit.Inodes + rootInode
	}
	return blocks, inodes, nil
}

// CreateScope implements driver.Volume. The project is assigned while the directory is empty: later
// every file would have to be assigned.
func (v *volume) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	blocks, inodes, err := kib(limit)
	if err != nil {
		return err
	}
	if err := v.MakeScope(scope); err != nil || !v.counted {
		return err
	}
	return v.set(ctx, scope, blocks, inodes)
}

// set assigns a project and limits to a scope. It replaces the limits of an earlier scope with the
// same project id.
func (v *volume) set(ctx context.Context, scope string, blocks, inodes int64) error {
	d, err := v.OpenTree(scope)
	if err != nil {
		return err
	}
	defer d.Close()
	id, err := v.project(ctx, d, scope)
	if err != nil {
		return err
	}
	return v.limit(ctx, id, blocks, inodes)
}

// SetScopeLimit implements driver.Volume.
func (v *volume) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	blocks, inodes, err := kib(limit)
	if err != nil {
		return err
	}
	return v.set(ctx, scope, blocks, inodes)
}

// GetScope implements driver.Volume.
func (v *volume) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	d, err := v.OpenTree(scope)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out := &pb.Scope{Limit: &pb.Limit{}}
	var id prjquota.ID
	if v.counted {
		if id, err = v.of(ctx, d, v.at(scope)); err != nil {
			return nil, err
		}
	}
	if id == 0 { // there is no usage to read
		v.walk.Fill(ctx, out, scope)
		return out, nil
	}
	q, err := v.quota(ctx, id)
	if err != nil {
		return nil, err
	}
	if q.maxKiB > 0 {
		n := q.maxKiB * 1024
		out.Limit.Bytes = &n
	}
	if q.maxInodes > 0 {
		n := q.maxInodes - rootInode
		out.Limit.Inodes = &n
	}
	bytes, inodes := q.kib*1024, max(q.inodes-rootInode, 0)
	out.UsedBytes, out.UsedInodes, out.Exact = &bytes, &inodes, q.exact
	return out, nil
}

// DeleteScope implements driver.Volume. The removed directory stays open until the limits are
// removed.
func (v *volume) DeleteScope(ctx context.Context, scope string) error {
	d, err := v.OpenTree(scope)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	var id prjquota.ID
	if v.counted {
		if id, err = v.of(ctx, d, v.at(scope)); err != nil {
			return err
		}
	}
	if err := v.RemoveScope(scope); err != nil {
		return err
	}
	v.walk.Forget(scope)
	if id == 0 {
		return nil
	}
	return v.limit(ctx, id, 0, 0)
}
