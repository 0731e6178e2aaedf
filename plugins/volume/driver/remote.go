package driver

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Remote is a Directory on a file server that may keep limits of its own: they are
// found by what it says is free in a scope's directory.
type Remote struct{ *Directory }

// NewRemote makes the volume; a scope's usage is measured again when it is older than
// maxAge.
func NewRemote(m *Mount, maxAge time.Duration) *Remote { return &Remote{NewDirectory(m, maxAge)} }

// GetScope adds what the server itself keeps: its limit when that is the smaller
// one, and its count, which needs no walk.
func (e *Remote) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	out, err := e.Directory.GetScope(ctx, scope)
	if err != nil {
		return nil, err
	}
	kept, err := e.serverQuota(scope)
	if err != nil || kept == nil {
		return out, err
	}
	if out.Limit.Bytes == nil || *out.Limit.Bytes > kept.limit {
		out.Limit.Bytes = &kept.limit
	}
	out.UsedBytes, out.Exact, out.AsOfUnixMs = &kept.used, true, now()
	return out, nil
}

type serverQuota struct{ limit, used int64 }

// serverQuota reads the limit that the server keeps on a scope's directory. File
// servers that limit directories (project quotas, qtrees, SmartQuotas) answer
// statfs in such a directory with its limit in the place of the file system's
// size; nil where both sizes are the same.
func (e *Remote) serverQuota(scope string) (*serverQuota, error) {
	root, err := e.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := e.OpenTree(scope)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	whole, err := sizes(root)
	if err != nil {
		return nil, err
	}
	part, err := sizes(dir)
	if err != nil {
		return nil, err
	}
	if part.limit <= 0 || part.limit >= whole.limit {
		return nil, nil
	}
	return &part, nil
}

func sizes(f *os.File) (serverQuota, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return serverQuota{}, Error("statfs", err)
	}
	return serverQuota{limit: bytes(st.Blocks, max(st.Frsize, 1)), used: bytes(st.Blocks-st.Bfree, max(st.Frsize, 1))}, nil
}
