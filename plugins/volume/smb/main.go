// Command smb is the volume plugin for what any SMB server shares, Windows or Samba,
// mounted by the kernel's client. Scopes are directories, and limits are kept by the
// proxy alone. What such a mount can differs from server to server and with how it was
// mounted: whether names differ by case alone, modes, owners, symbolic links. The
// plugin tries that out, and is told what people shall do without.
//
// docs/storage/smb.md has the options and what is known of the product.
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
	Accept []string `json:"accept" enum:"case,modes,owners,symlinks,text" about:"what the mount may lack: names that differ by case alone, modes and owners of files, symbolic links, names in every script"`
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
	// Of 32 bits, whatever the field has.
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
