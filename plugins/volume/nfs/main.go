// Command nfs is the volume plugin for exports of any NFS server. Scopes are directories. NFS has
// no calls for limits, so only the proxy enforces the limits that Berth sets. A limit that the
// server itself enforces on a scope's directory is detected by the free space that it reports
// there.
package main

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
)

type options struct {
	MaxAge int64 `json:"usage_max_age_s" min:"0" max:"86400" about:"a scope's usage is measured again when it is older than this"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "Linux", Name: "nfs", Version: "1.0.0", Defaults: options{MaxAge: 30}, Open: open,
	})
}

func open(_ context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	st, err := m.Statfs()
	if err != nil {
		return nil, err
	}
	if st.Type != unix.NFS_SUPER_MAGIC {
		return nil, status.Errorf(codes.FailedPrecondition, "mount_path %s is %s, not NFS", m.Path(), m.FSType())
	}
	return &export{driver.NewRemote(m, time.Duration(o.MaxAge)*time.Second)}, nil
}
