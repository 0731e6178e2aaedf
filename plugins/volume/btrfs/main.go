// Command btrfs is the volume plugin for btrfs: a scope is a subvolume, and its
// limit is that of the subvolume's quota group, which stops every writer at the
// byte. Copies share their blocks.
//
// It needs CAP_SYS_ADMIN for quotas; docs/storage/btrfs.md says what is left
// without.
package main

import (
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/volume/driver"
)

type options struct {
	Quota       string `json:"quota" enum:"as-found,full,simple" about:"what to turn on where quotas are off: full counts shared blocks for everyone who has them, simple (Linux 6.7) for who wrote them"`
	UsageMaxAge int    `json:"usage_max_age_s" min:"0" max:"86400" about:"where there are no quotas, a scope's usage is measured again when it is older than this"`
	Rescan      bool   `json:"rescan" about:"count anew when the kernel says that its figures are wrong"`
}

func main() {
	// A subvolume's mode cannot be mended where its limit is zero.
	unix.Umask(0o022)
	driver.Run(driver.Backend[options]{
		Vendor: "Berth", Name: "btrfs", Version: "1.0.0",
		Defaults: options{Quota: "as-found", Rescan: true, UsageMaxAge: 30},
		Open:     open,
	})
}
