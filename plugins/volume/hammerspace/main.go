// Command hammerspace is the volume plugin for Hammerspace, through the REST API of its Anvil. A
// scope is a share with a size limit in the mounted namespace.
//
// docs/storage/hammerspace.md documents the options and the known behavior of the product.
package main

import (
	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

type options struct {
	rest.Options
	Username   string        `json:"username" required:"true" about:"who the plugin logs in as"`
	Password   driver.Secret `json:"password_file" required:"true" about:"the file that holds the password"`
	Path       string        `json:"path" pattern:"^/" about:"the directory of the namespace that is mounted"`
	Subnet     string        `json:"export_subnet" about:"who may mount a new share"`
	RootSquash bool          `json:"root_squash" about:"take root's rights away on new shares"`
	Portal     string        `json:"portal" about:"the address by which nodes mount single shares; without it they mount the namespace"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "Hammerspace", Name: "hammerspace", Version: "1.0.0",
		Defaults: options{Options: rest.Defaults(), Path: "/", Subnet: "*"},
		Open:     open,
	})
}
