// Command xfs is the volume plugin for xfs with project quotas.
package main

import (
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/xfs/project"
)

func main() {
	driver.Run(project.Backend("xfs", unix.XFS_SUPER_MAGIC))
}
