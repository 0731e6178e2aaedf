// Command spectrumscale is the volume plugin for IBM Storage Scale (GPFS), through the REST API of
// its GUI. A scope is a fileset of the mounted file system, and its limit is a quota, which the
// cluster enforces.
//
// docs/storage/spectrumscale.md documents the options and the known behavior of the product.
package main

import (
	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

type options struct {
	rest.Options
	Username    string        `json:"username" required:"true" about:"the user that the plugin logs in as"`
	Password    driver.Secret `json:"password_file" required:"true" about:"the file with the password"`
	Filesystem  string        `json:"filesystem" required:"true" about:"the mounted file system, by its name in the cluster"`
	Path        string        `json:"path" pattern:"^/" about:"the mounted directory of the file system"`
	Independent bool          `json:"independent" about:"create filesets with their own inode space; a file system can have fewer of them"`
	FileLimits  bool          `json:"file_limits" about:"offer limits on the number of files"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "IBM", Name: "spectrumscale", Version: "1.0.0",
		Defaults: options{Options: rest.Defaults(), Path: "/", FileLimits: true},
		Open:     open,
	})
}
