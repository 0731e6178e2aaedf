// Command vast is the volume plugin for VAST Data, through its REST API. A scope is a directory of
// the mounted view, and its limit is a quota on the path, which the cluster enforces.
//
// docs/storage/vast.md documents the options and the known behavior of the product.
package main

import (
	"errors"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

type options struct {
	rest.Options
	Username   string        `json:"username" about:"the user that the plugin logs in as, with password_file"`
	Password   driver.Secret `json:"password_file" about:"the file with the password"`
	Token      driver.Secret `json:"token_file" about:"the file with an API token, instead of a user and a password"`
	Tenant     string        `json:"tenant" about:"the tenant of the view"`
	Path       string        `json:"path" required:"true" pattern:"^/" about:"the mounted directory of the cluster: the view's path"`
	FileLimits bool          `json:"file_limits" about:"offer limits on the number of files"`
	Trash      bool          `json:"trash" about:"delete trees with the cluster's trash if it is enabled"`
}

// Check checks the rule between options for driver.Decode.
func (o *options) Check() error {
	switch {
	case o.Token != "" && (o.Username != "" || o.Password != ""):
		return errors.New("token_file: set it, or username and password_file")
	case o.Token == "" && o.Username == "":
		return errors.New("username: is required without token_file")
	case o.Token == "" && o.Password == "":
		return errors.New("password_file: is required without token_file")
	}
	return nil
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "VAST Data", Name: "vast", Version: "1.0.0",
		Defaults: options{Options: rest.Defaults(), Tenant: "default", FileLimits: true, Trash: true},
		Open:     open,
	})
}
