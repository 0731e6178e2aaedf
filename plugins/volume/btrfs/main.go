// Command btrfs is the volume plugin for btrfs. A scope is a subvolume with the limit of its quota
// group, which stops every writer exactly at the limit. Copies share their blocks.
//
// Quotas require CAP_SYS_ADMIN; docs/storage/btrfs.md describes the operation without it.
package main

import (
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/volume/driver"
)

type options struct {
	Quota       string `json:"quota" enum:"as-found,full,simple" about:"the kind of quotas to enable if quotas are off: full counts shared blocks for every scope that has them, simple (Linux 6.7) for the scope that wrote them"`
	UsageMaxAge int    `json:"usage_max_age_s" min:"0" max:"86400" about:"without quotas, a scope's usage is measured again when it is older than this"`
	Rescan      bool   `json:"rescan" about:"count again when the kernel reports that its usage is wrong"`
}

func main() {
	// The mode of a subvolume cannot be corrected later if its limit is zero.
	unix.Umask(0o022)
	driver.Run(driver.Backend[options]{
		Vendor: "Berth", Name: "btrfs", Version: "1.0.0",
		Defaults: options{Quota: "as-found", Rescan: true, UsageMaxAge: 30},
		Open:     open,
	})
}
