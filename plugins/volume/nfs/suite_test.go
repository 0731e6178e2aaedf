package main

import (
	"testing"

	"github.com/berthhq/berth/plugins/volume/volumetest"
)

// TestVMSuite runs the suite over NFS.
func TestVMSuite(t *testing.T) {
	each(t, "vers=4.2", func(t *testing.T, s site) {
		volumetest.Test(t, volumetest.Plugin{Path: s.Program("nfs"), Mount: s.mount, Options: `{"usage_max_age_s": 0}`})
	})
}
