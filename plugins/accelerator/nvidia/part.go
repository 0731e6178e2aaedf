package main

import (
	"fmt"
	"math"
	"strconv"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// part is the share of a GPU that a grant means.
type part struct {
	unit    *gpu
	mem     uint64  // bytes it can use
	compute float64 // fraction of its multiprocessors, in (0, 1]
	whole   bool    // the whole GPU, exclusively
}

// shares returns how many thousandths of shares a GPU has. By default the GPU is one share; with
// units, the number is limited by its memory and its multiprocessors.
func (c config) shares(g *gpu) int64 {
	if c.UnitMem == 0 && c.UnitSM == 0 {
		return 1000
	}
	n := int64(math.MaxInt64)
	if c.UnitMem > 0 {
		n = int64(g.memory>>20) * 1000 / (c.UnitMem >> 20)
	}
	if c.UnitSM > 0 {
		n = min(n, int64(g.units)*1000/c.UnitSM)
	}
	return n / c.quantum * c.quantum
}

// part converts a grant to bytes and multiprocessors.
func (c config) part(g accelerator.Grant, unit *gpu) part {
	p := part{unit: unit, mem: uint64(g.Part * float64(unit.memory)), compute: g.Part, whole: g.Part == 1}
	switch g.Slot.GetName() {
	case memory:
		p.mem = uint64(g.Amount)
	case shares:
		if c.UnitMem > 0 {
			p.mem = uint64(g.Amount) * uint64(c.UnitMem>>10) / 1000 << 10
			p.whole = p.whole && p.mem>>20 >= unit.memory>>20
		}
		if c.UnitSM > 0 && unit.units > 0 {
			p.compute = min(1, float64(g.Amount)*float64(c.UnitSM)/1000/float64(unit.units))
			p.whole = p.whole && p.compute == 1
		}
	}
	return p
}

// percent returns the percentage of the multiprocessors as a whole number, rounded down, but at
// least 1.
func (p part) percent() string {
	return strconv.Itoa(max(1, int(math.Floor(p.compute*100+1e-9))))
}

func (p part) units() uint32 { return uint32(p.compute * float64(p.unit.units)) }

// shareSlot returns the slot of shares with its description.
func (c config) shareSlot() *pb.SlotType {
	s := &pb.SlotType{
		Name: shares, Kind: pb.SlotType_SHARES, Quantum: c.Quantum, DisplayName: "fGPU", Unit: "fGPU", Icon: "nvidia",
		Description: "Part of an NVIDIA GPU; 1 is all of it", ExclusiveWith: []string{whole}, Unified: true,
	}
	switch {
	case c.UnitMem > 0 && c.UnitSM > 0:
		s.Description = fmt.Sprintf("Part of an NVIDIA GPU; 1 is %d MiB and %d multiprocessors", c.UnitMem>>20, c.UnitSM)
	case c.UnitMem > 0:
		s.Description = fmt.Sprintf("Part of an NVIDIA GPU; 1 is %d MiB", c.UnitMem>>20)
	case c.UnitSM > 0:
		s.Description = fmt.Sprintf("Part of an NVIDIA GPU; 1 is %d multiprocessors", c.UnitSM)
	}
	return s
}
