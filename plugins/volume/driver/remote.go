package driver

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Remote is a Directory on a file server that may enforce limits itself. It detects them by the
// free space in a scope's directory.
type Remote struct{ *Directory }

// NewRemote returns the volume. The usage of a scope is measured again after maxAge.
func NewRemote(m *Mount, maxAge time.Duration) *Remote { return &Remote{NewDirectory(m, maxAge)} }

// GetScope also returns the server's limit if it is the smaller one, and the server's usage, which
// needs no walk.
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

// serverQuota returns the limit that the server enforces on a scope's directory, or nil if there is
// none. File servers with limits on directories (project quotas, qtrees, SmartQuotas) return the
// limit as the size of the file system when statfs is called in such a directory.
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
