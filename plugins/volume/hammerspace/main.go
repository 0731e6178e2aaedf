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
	Username   string        `json:"username" required:"true" about:"the user that the plugin logs in as"`
	Password   driver.Secret `json:"password_file" required:"true" about:"the file with the password"`
	Path       string        `json:"path" pattern:"^/" about:"the mounted directory of the namespace"`
	Subnet     string        `json:"export_subnet" about:"the network that can mount new shares"`
	RootSquash bool          `json:"root_squash" about:"remove root's permissions on new shares"`
	Portal     string        `json:"portal" about:"the address by which nodes mount single shares; without it they mount the namespace"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "Hammerspace", Name: "hammerspace", Version: "1.0.0",
		Defaults: options{Options: rest.Defaults(), Path: "/", Subnet: "*"},
		Open:     open,
	})
}
