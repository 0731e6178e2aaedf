package project

import (
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/xfs/prjquota"
)

// rootInode is the scope's own directory, which the kernel counts and we do not.
const rootInode = 1

// attempts at a free number: the chance that one is taken is one in a thousand
// with a million scopes.
const attempts = 32

// allocate puts an empty directory into a project that nothing else on the file
// system is in. What the file system counts is the only register of numbers: it is
// right after any crash, and for other volumes on the same file system too. Two
// that take the same number at once both see two inodes in it and try others.
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
	return 0, status.Errorf(codes.ResourceExhausted, "scope %s: %d project numbers tried, all are taken", scope, attempts)
}

// kernelLimit is a limit in the kernel's words, in which 0 is none.
func kernelLimit(f *os.File, l *pb.Limit) (prjquota.Quota, error) {
	var q prjquota.Quota
	if l != nil && l.Bytes != nil {
		kept, err := prjquota.Round(f, *l.Bytes)
		if err != nil {
			return q, err
		}
		if kept <= 0 {
			return q, status.Errorf(codes.InvalidArgument, "limit.bytes: %d is less than a block, and no bytes at all is what the kernel cannot hold", *l.Bytes)
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
