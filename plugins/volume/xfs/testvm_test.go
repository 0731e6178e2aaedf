package main

import (
	"testing"

	"github.com/berthhq/berth/internal/testvm"
	"github.com/berthhq/berth/internal/testvm/vmtest"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

func TestMain(m *testing.M) { vmtest.Main(m) }

// TestVMSuite runs the suite against both plugins on real file systems.
func TestVMSuite(t *testing.T) {
	m := vmtest.Machine{
		Machine:  testvm.Machine{Disks: []testvm.Disk{testvm.XFS("xfs"), testvm.Ext4("ext4")}},
		Programs: map[string]string{"xfs": ".", "ext4": "../ext4"},
	}
	vmtest.Each(t, m, func(t *testing.T, p vmtest.Environment) {
		for _, name := range []string{"xfs", "ext4"} {
			t.Run(name, func(t *testing.T) {
				volumetest.Test(t, volumetest.Plugin{Path: p.Program(name), Mount: p.Mount(name)})
			})
		}
	})
}
