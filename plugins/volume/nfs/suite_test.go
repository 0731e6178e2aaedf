package main

import (
	"testing"

	"github.com/berthhq/berth/plugins/volume/volumetest"
)

// TestLaneSuite runs the suite over the wire.
func TestLaneSuite(t *testing.T) {
	for _, version := range []string{"4.2", "4.0"} {
		t.Run(version, func(t *testing.T) {
			each(t, "vers="+version, func(t *testing.T, s site) {
				volumetest.Test(t, volumetest.Plugin{Path: s.Program("nfs"), Mount: s.mount, Options: `{"usage_max_age_s": 0}`})
			})
		})
	}
}
