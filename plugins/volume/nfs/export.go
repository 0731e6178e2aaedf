package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/nfs/nfsmount"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// export is a volume behind an NFS mount.
type export struct{ *driver.Directory }

// Health tells beside the mount's own what in the way it is mounted loses data,
// and whether the server lets this user write.
func (e *export) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := e.Directory.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	mount, err := nfsmount.Find(e.Path())
	if err != nil { // a directory below the mount point
		h.Metadata["mount"] = err.Error()
		return h, nil
	}
	for k, v := range mount.Told() {
		h.Metadata[k] = v
	}
	reasons := mount.Doubts()
	if err := e.Writable(); err != nil {
		reasons = append(reasons, "the server refuses to let uid "+strconv.Itoa(os.Geteuid())+" write ("+status.Convert(err).Message()+"): export with no_root_squash, or give the directory to that user")
	}
	if len(reasons) > 0 && h.State == pb.HealthReport_HEALTHY {
		h.State, h.Reason = pb.HealthReport_DEGRADED, strings.Join(reasons, "; ")
	}
	return h, nil
}

// GetScope adds what the server itself keeps: its limit when that is the smaller
// one, and its count, which needs no walk.
func (e *export) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
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
	out.UsedBytes, out.Exact, out.AsOfUnixMs = &kept.used, true, time.Now().UnixMilli()
	return out, nil
}

type serverQuota struct{ limit, used int64 }

// serverQuota reads the limit that the server keeps on a scope's directory. File
// servers that limit directories (project quotas, qtrees, SmartQuotas) answer
// statfs in such a directory with its limit in the place of the file system's
// size; nil where both sizes are the same.
func (e *export) serverQuota(scope string) (*serverQuota, error) {
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
		return serverQuota{}, driver.Error("statfs", err)
	}
	size := max(st.Frsize, 1)
	return serverQuota{limit: int64(st.Blocks) * size, used: int64(st.Blocks-st.Bfree) * size}, nil
}
