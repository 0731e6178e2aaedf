package main

import (
	"context"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/nfs/nfsmount"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// export is a volume that is mounted by NFS.
type export struct{ *driver.Remote }

// Health adds to the mount's health the mount options that can lose data, and whether the server
// lets this user write.
func (e *export) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := e.Remote.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	mount, err := nfsmount.Find(e.Path())
	if err != nil { // a directory below the mount point
		h.Metadata["mount"] = err.Error()
		return h, nil
	}
	for k, v := range mount.Shown() {
		h.Metadata[k] = v
	}
	reasons := mount.Warnings()
	if err := e.Writable(); err != nil {
		reasons = append(reasons, "the server refuses to let uid "+strconv.Itoa(os.Geteuid())+" write ("+status.Convert(err).Message()+"): export with no_root_squash, or give the directory to that user")
	}
	if len(reasons) > 0 && h.State == pb.HealthReport_HEALTHY {
		h.State, h.Reason = pb.HealthReport_DEGRADED, strings.Join(reasons, "; ")
	}
	return h, nil
}
