// Command powerscale is the volume plugin for Dell PowerScale (Isilon), OneFS 8 or newer. A scope
// is a directory below the mounted one, with its own SmartQuotas quota, which the cluster enforces.
//
// docs/storage/powerscale.md documents the options and the privileges of the user.
package main

import (
	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

type options struct {
	rest.Options
	Username  string        `json:"username" required:"true" about:"the user that the plugin logs in as"`
	Password  driver.Secret `json:"password_file" required:"true" about:"the file with the password"`
	Path      string        `json:"path" required:"true" pattern:"^/ifs(/[^/]+)+$" about:"the mounted directory, by its path on the cluster"`
	Measure   string        `json:"measure" enum:"fslogicalsize,applogicalsize,physicalsize" about:"the size that limits and usage count; before OneFS 8.2 applogicalsize does not exist"`
	Container bool          `json:"container" about:"show a limit to clients as the size of the scope"`
	MaxAge    int64         `json:"usage_max_age_s" min:"0" max:"86400" about:"without quotas, a scope's usage is measured again when it is older than this"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "Dell", Name: "powerscale", Version: "1.0.0",
		Defaults: options{Options: rest.Defaults(), Measure: "fslogicalsize", Container: true, MaxAge: 30},
		Open:     open,
	})
}
