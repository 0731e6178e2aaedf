package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/agent/condition"
	"github.com/berthhq/berth/internal/resource"
)

// floorOptions are the flags for free space below which an agent takes no new sessions.
type floorOptions struct {
	diskPercent, inodePercent float64
	disk, memory              string
}

func (o *floorOptions) flags(cmd *cobra.Command) {
	f, d := cmd.Flags(), condition.Defaults
	f.Float64Var(&o.diskPercent, "min-free-disk-percent", d.DiskPercent, "free space of a disk, in percent, below which the machine takes no new sessions")
	f.StringVar(&o.disk, "min-free-disk", "1g", "free space of a disk below which the machine takes no new sessions; of a small disk at most a tenth")
	f.Float64Var(&o.inodePercent, "min-free-inodes-percent", d.InodePercent, "free inodes of a disk, in percent, below which the machine takes no new sessions")
	f.StringVar(&o.memory, "min-free-memory", "256m", "available memory below which the machine takes no new sessions")
}

func (o *floorOptions) limits() (l condition.Limits, err error) {
	l.DiskPercent, l.InodePercent = o.diskPercent, o.inodePercent
	for _, p := range []float64{o.diskPercent, o.inodePercent} {
		if p < 0 || p > 90 {
			return l, fmt.Errorf("--min-free-disk-percent, --min-free-inodes-percent: %g is not between 0 and 90", p)
		}
	}
	if l.DiskBytes, err = resource.Parse(resource.Mem, o.disk); err != nil {
		return l, fmt.Errorf("--min-free-disk: %w", err)
	}
	if l.MemoryBytes, err = resource.Parse(resource.Mem, o.memory); err != nil {
		return l, fmt.Errorf("--min-free-memory: %w", err)
	}
	return l, nil
}
