// Command smb is the volume plugin for shares of any SMB server, Windows or Samba, mounted by the
// kernel's client. Scopes are directories, and only the proxy enforces limits. The abilities of
// such a mount differ between servers and mount options: names that differ only by case, modes,
// owners, symbolic links. The plugin tests them, and the operator lists those that users can do
// without.
//
// docs/storage/smb.md documents the options and the known behavior of the product.
package main

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
)

type options struct {
	Accept []string `json:"accept" enum:"case,modes,owners,symlinks,text" about:"abilities that the mount can lack: names that differ by case alone, modes and owners of files, symbolic links, names in every script"`
	MaxAge int64    `json:"usage_max_age_s" min:"0" max:"86400" about:"a scope's usage is measured again when it is older than this"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "SMB", Name: "smb", Version: "1.0.0", Defaults: options{MaxAge: 30}, Open: open,
	})
}

func open(_ context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	st, err := m.Statfs()
	if err != nil {
		return nil, err
	}
	// The kernel's values have 32 bits, whatever the size of the field.
	if kind := uint32(st.Type); kind != unix.SMB2_SUPER_MAGIC && kind != unix.CIFS_SUPER_MAGIC {
		return nil, status.Errorf(codes.FailedPrecondition, "mount_path %s is %s, not SMB", m.Path(), m.FSType())
	}
	s := &share{Remote: driver.NewRemote(m, time.Duration(o.MaxAge)*time.Second), options: o}
	if s.accepts(noCase) {
		return s, nil
	}
	one, err := oneName(m)
	if err != nil {
		return nil, err
	}
	if one {
		return nil, status.Error(codes.FailedPrecondition, lacks[noCase])
	}
	return s, nil
}

func (s *share) accepts(what string) bool { return slices.Contains(s.options.Accept, what) }
