// Command purestorage is the volume plugin for Pure Storage FlashBlade through its REST API 2. A
// FlashBlade has no limits for directories: either every scope is a file system with a hard limit,
// or all scopes are directories of one file system and only the proxy enforces limits.
//
// docs/storage/purestorage.md documents the options and how to mount the file systems.
package main

import (
	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

// The modes.
const (
	perScope = "filesystem-per-scope"
	shared   = "shared"
)

type options struct {
	rest.Options
	Token       driver.Secret `json:"token_file" required:"true" about:"the file with the API token"`
	Mode        string        `json:"mode" enum:"filesystem-per-scope,shared" about:"a file system for each scope, with hard limits, or directories of a mounted one"`
	Filesystem  string        `json:"filesystem" about:"shared: the mounted file system, by its name on the array"`
	Prefix      string        `json:"prefix" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,30}$" about:"filesystem-per-scope: the prefix of the names of scopes' file systems"`
	DataAddress string        `json:"data_address" about:"filesystem-per-scope: the address that nodes mount from"`
	Rules       string        `json:"nfs_rules" about:"filesystem-per-scope: the clients that can mount a new file system; the array's default when empty"`
	Version     string        `json:"nfs_version" enum:"3,4.1" about:"filesystem-per-scope: the version of NFS"`
	Eradicate   bool          `json:"eradicate" about:"filesystem-per-scope: remove the file system of a deleted scope at once; otherwise, the array keeps it for a day"`
	MaxAge      int64         `json:"usage_max_age_s" min:"0" max:"86400" about:"shared: a scope's usage is measured again when it is older than this"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "Pure Storage", Name: "purestorage", Version: "1.0.0",
		Defaults: options{Options: rest.Defaults(), Mode: perScope, Prefix: "berth-", Version: "4.1", MaxAge: 30},
		Open:     open,
	})
}
