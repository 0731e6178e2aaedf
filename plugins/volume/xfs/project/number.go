package project

import (
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/xfs/prjquota"
)

// rootInode is the scope's own directory, which the kernel counts and Berth does not.
const rootInode = 1

// attempts limits the search for an unused id. With a million scopes, one id in a thousand is used.
const attempts = 32

// allocate assigns an unused project to an empty directory. The file system's usage is the only
// register of project ids, so it is correct after any crash, and includes other volumes on the same
// file system. If two processes take the same id at once, both see two inodes in it and try other
// ids.
func allocate(d *os.File, scope string) (prjquota.ID, error) {
	if err := prjquota.Assign(d, 0); err != nil {
		return 0, err
	}
	for n := range attempts {
		id := prjquota.Candidate(scope, n)
		q, err := prjquota.Get(d, id)
		if err != nil {
			return 0, err
		}
		if q.Inodes > 0 || q.Bytes > 0 {
			continue
		}
		if err := prjquota.Assign(d, id); err != nil {
			return 0, err
		}
		if q, err = prjquota.Get(d, id); err != nil {
			return 0, err
		}
		if q.Inodes == rootInode {
			return id, nil
		}
		if err := prjquota.Assign(d, 0); err != nil {
			return 0, err
		}
	}
	return 0, status.Errorf(codes.ResourceExhausted, "scope %s: all of %d project numbers are taken", scope, attempts)
}

// kernelLimit converts a limit to the kernel's, in which 0 means unlimited.
func kernelLimit(f *os.File, l *pb.Limit) (prjquota.Quota, error) {
	var q prjquota.Quota
	if l != nil && l.Bytes != nil {
		kept, err := prjquota.Round(f, *l.Bytes)
		if err != nil {
			return q, err
		}
		if kept <= 0 {
			return q, status.Errorf(codes.InvalidArgument, "limit.bytes: %d is less than a block, and the kernel does not support a limit of zero", *l.Bytes)
		}
		q.MaxBytes = kept
	}
	if l != nil && l.Inodes != nil {
		if *l.Inodes < 0 {
			return q, status.Errorf(codes.InvalidArgument, "limit.inodes: %d is negative", *l.Inodes)
		}
		q.MaxInodes = *l.Inodes + rootInode
	}
	return q, nil
}
