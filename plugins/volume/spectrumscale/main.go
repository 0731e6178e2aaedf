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
	Username    string        `json:"username" required:"true" about:"who the plugin logs in as"`
	Password    driver.Secret `json:"password_file" required:"true" about:"the file that holds the password"`
	Filesystem  string        `json:"filesystem" required:"true" about:"the file system that is mounted, by its name in the cluster"`
	Path        string        `json:"path" pattern:"^/" about:"the directory of the file system that is mounted"`
	Independent bool          `json:"independent" about:"make filesets with an inode space of their own, of which there are fewer"`
	FileLimits  bool          `json:"file_limits" about:"offer limits on the number of files"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "IBM", Name: "spectrumscale", Version: "1.0.0",
		Defaults: options{Options: rest.Defaults(), Path: "/", FileLimits: true},
		Open:     open,
	})
}
