// Command cephfs is the volume plugin for CephFS, mounted by ceph-fuse or by the kernel. A scope is
// a directory. Its limits are the quota in the directory's extended attributes, which Ceph's
// clients enforce, and its usage is the metadata server's statistics of the directory.
//
// docs/storage/cephfs.md documents the options and the known behavior of the product.
package main

import "github.com/berthhq/berth/plugins/volume/driver"

type options struct {
	Quota bool `json:"quota" about:"offer limits; false where the client's key lacks the capability p, without which quotas cannot be set"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "Ceph", Name: "cephfs", Version: "1.0.0", Defaults: options{Quota: true}, Open: open,
	})
}
