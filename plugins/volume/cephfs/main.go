// Command cephfs is the volume plugin for CephFS, mounted by ceph-fuse or by the
// kernel: a scope is a directory, its limits are the quota in the directory's
// extended attributes, which Ceph's clients keep, and its usage is the count that
// the metadata server has of every directory.
//
// docs/storage/cephfs.md has the options and what is known of the product.
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
