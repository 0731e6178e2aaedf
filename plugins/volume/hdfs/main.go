// Command hdfs is the volume plugin for the Hadoop file system, mounted by its NFS gateway or by
// FUSE. A scope is a directory with quotas, which the name node enforces and the plugin sets and
// reads through WebHDFS. Space quotas of HDFS count every replica; the plugin's values do not.
//
// docs/storage/hdfs.md documents the options and the known behavior of the product.
package main

import (
	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

type options struct {
	rest.Options
	Username    string        `json:"username" required:"true" about:"a superuser of HDFS, or a user of the gateway with that role"`
	Password    driver.Secret `json:"password_file" about:"the file with the password, if a gateway (Knox) requires one"`
	Token       driver.Secret `json:"token_file" about:"the file with a delegation token, in place of user and password"`
	Path        string        `json:"path" pattern:"^/" about:"the mounted directory of HDFS"`
	Replication int64         `json:"replication" min:"0" max:"512" about:"copies of a file, by which limits are multiplied; 0 uses the name node's value for new files"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "Apache Hadoop", Name: "hdfs", Version: "1.0.0",
		Defaults: options{Options: rest.Defaults(), Path: "/"}, Open: open,
	})
}
