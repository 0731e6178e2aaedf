// Command netapp is the volume plugin for NetApp ONTAP, 9.6 or newer, through its REST API. A scope
// is a qtree of the mounted volume, and its limit is a quota rule, which the array enforces.
//
// docs/storage/netapp.md documents the options and the privileges of the role.
package main

import (
	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

type options struct {
	rest.Options
	Username     string        `json:"username" required:"true" about:"the user that the plugin logs in as"`
	Password     driver.Secret `json:"password_file" required:"true" about:"the file with the password"`
	SVM          string        `json:"svm" required:"true" about:"the storage virtual machine"`
	Volume       string        `json:"volume" required:"true" about:"the mounted volume, by its name on the array"`
	ExportPolicy string        `json:"export_policy" about:"the export policy of new qtrees; the volume's by default"`
	FileLimits   bool          `json:"file_limits" about:"offer limits on the number of files"`
	ManageQuotas bool          `json:"manage_quotas" about:"turn quotas on if they are off, and off and on again if the array enforces a new limit only after that"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "NetApp", Name: "netapp", Version: "1.0.0",
		Defaults: options{Options: rest.Defaults(), FileLimits: true, ManageQuotas: true},
		Open:     open,
	})
}
