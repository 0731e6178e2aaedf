// Command weka is the volume plugin for WEKA, 4.3 or newer, through its REST API. A scope is a
// directory of the mounted file system, and its limit is a directory quota, which the cluster
// enforces.
//
// docs/storage/weka.md documents the options and the known behavior of the product.
package main

import (
	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

type options struct {
	rest.Options
	Username     string        `json:"username" required:"true" about:"the user that the plugin logs in as"`
	Password     driver.Secret `json:"password_file" required:"true" about:"the file with the password"`
	Organization string        `json:"organization" about:"the organization of the user"`
	Filesystem   string        `json:"filesystem" required:"true" about:"the mounted file system, by its name in the cluster"`
	Path         string        `json:"path" pattern:"^/" about:"the mounted directory of the file system"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "WEKA", Name: "weka", Version: "1.0.0",
		Defaults: options{Options: rest.Defaults(), Organization: "Root", Path: "/"},
		Open:     open,
	})
}
