// Command exascaler is the volume plugin for DDN EXAScaler and other Lustre file systems, 2.10 or
// newer. A scope is a directory with its own project, whose quota the servers enforce. The plugin
// runs lfs, the program of a Lustre client.
//
// docs/storage/exascaler.md documents the options and the requirements for servers.
package main

import "github.com/berthhq/berth/plugins/volume/driver"

type options struct {
	LFS        string `json:"lfs" pattern:"^/" about:"the program lfs of the Lustre client"`
	Assign     string `json:"assign" enum:"lfs,ioctl" about:"the way to set the project of a directory: with the program, or with the kernel's own call"`
	Enforced   bool   `json:"enforced" about:"the servers enforce quotas of projects, which a client cannot find out; false = they only count"`
	FileLimits bool   `json:"file_limits" about:"offer limits on the number of files"`
	MaxAge     int64  `json:"usage_max_age_s" min:"0" max:"86400" about:"without quotas, a scope's usage is measured again when it is older than this"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "DDN", Name: "exascaler", Version: "1.0.0",
		Defaults: options{LFS: "/usr/bin/lfs", Assign: "lfs", Enforced: true, FileLimits: true, MaxAge: 30},
		Open:     open,
	})
}
