// Command ext4 is the volume plugin for ext4 with project quotas.
package main

import (
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/xfs/project"
)

func main() {
	driver.Run(project.Backend("ext4", unix.EXT4_SUPER_MAGIC))
}
