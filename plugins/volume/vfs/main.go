// Command vfs is the volume plugin for a plain directory of any mounted file system. Scopes are
// directories, capacity comes from statfs, and usage from a walk. Limits are cooperative: the proxy
// refuses uploads above them, but containers can exceed them.
package main

import (
	"context"
	"time"

	"github.com/berthhq/berth/plugins/volume/driver"
)

type options struct {
	MaxAge int64 `json:"usage_max_age_s" min:"0" max:"86400" about:"a scope's usage is measured again when it is older than this"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "Berth", Name: "vfs", Version: "1.1.0", Defaults: options{MaxAge: 30},
		Open: func(_ context.Context, m *driver.Mount, o options) (driver.Volume, error) {
			return driver.NewDirectory(m, time.Duration(o.MaxAge)*time.Second), nil
		},
	})
}
