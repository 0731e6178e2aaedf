package main

import (
	"testing"

	"github.com/berthhq/berth/internal/lane"
	"github.com/berthhq/berth/internal/lane/lanetest"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

func TestMain(m *testing.M) { lanetest.Main(m) }

// TestLaneSuite runs the suite against both plugins of this code on real file
// systems.
func TestLaneSuite(t *testing.T) {
	m := lanetest.Machine{
		Machine:  lane.Machine{Disks: []lane.Disk{lane.XFS("xfs"), lane.Ext4("ext4")}},
		Programs: map[string]string{"xfs": ".", "ext4": "../ext4"},
	}
	lanetest.Each(t, m, func(t *testing.T, p lanetest.Place) {
		for _, name := range []string{"xfs", "ext4"} {
			t.Run(name, func(t *testing.T) {
				volumetest.Test(t, volumetest.Plugin{Path: p.Program(name), Mount: p.Mount(name)})
			})
		}
	})
}
