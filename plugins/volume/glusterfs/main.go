// Command glusterfs is the volume plugin for GlusterFS. A scope is a directory with the limits and
// usage of the volume's quotas. The plugin runs gluster, the program of a node of the storage pool.
//
// docs/storage/glusterfs.md documents the options and the known behavior of the product.
package main

import "github.com/berthhq/berth/plugins/volume/driver"

type options struct {
	Gluster string `json:"gluster" pattern:"^/" about:"the program gluster of a node of the storage pool"`
	Volume  string `json:"volume" pattern:"^[A-Za-z0-9_-]*$" about:"the Gluster volume; by default the mounted one"`
	Path    string `json:"path" pattern:"^/" about:"the directory at the mount path, below the mounted one"`
	MaxAge  int64  `json:"usage_max_age_s" min:"0" max:"86400" about:"without quotas, a scope's usage is measured again when it is older than this"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "Gluster", Name: "glusterfs", Version: "1.0.0",
		Defaults: options{Gluster: "/usr/sbin/gluster", Path: "/", MaxAge: 30},
		Open:     open,
	})
}
