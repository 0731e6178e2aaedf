package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// The mechanisms that enforce a container's share of a GPU.
const (
	advisory = "advisory" // none: the program only knows its share
	limited  = "limit"    // the library limits memory
	mps      = "mps"      // NVIDIA's Multi-Process Service limits memory and processors
)

// config is the plugin's section of the agent's configuration.
type config struct {
	MinComputeCapability string `json:"min_compute_capability"`
	Fractions            bool   `json:"fractions"`
	Quantum              string `json:"quantum"`
	Enforcement          string `json:"enforcement"`
	// UnitMem and UnitCompute define one share; 0 = one share is the whole GPU.
	UnitMem int64 `json:"unit_mem"`
	UnitSM  int64 `json:"unit_sm"`

	minMajor, minMinor int
	quantum            int64 // thousandths
}

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "min_compute_capability": {"type": "string", "pattern": "^[0-9]+\\.[0-9]+$", "default": "7.5", "description": "Older devices are shown and not given away"},
    "fractions": {"type": "boolean", "default": true, "description": "Offer cuda.shares and cuda.mem"},
    "quantum": {"type": "string", "default": "0.01", "description": "Smallest share of a device"},
    "enforcement": {"enum": ["advisory", "limit", "mps"], "description": "How a container is kept within its share: not at all, with the preloaded library (default where it is installed), or with MPS"},
    "unit_mem": {"type": "integer", "minimum": 0, "default": 0, "description": "Bytes of memory in one share; 0 and no unit_sm: one share is the whole GPU"},
    "unit_sm": {"type": "integer", "minimum": 0, "default": 0, "description": "Multiprocessors in one share; 0: memory alone counts"}
  }
}`

// parse parses settings. library is "" if the library of the limit is not installed.
func parse(raw []byte, library string) (config, error) {
	c := config{MinComputeCapability: "7.5", Fractions: true, Quantum: "0.01"}
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	if _, err := fmt.Sscanf(c.MinComputeCapability+"\n", "%d.%d\n", &c.minMajor, &c.minMinor); err != nil {
		return c, fmt.Errorf("config_json: min_compute_capability: %q is not like 7.5", c.MinComputeCapability)
	}
	q, err := accelerator.ParseAmount(pb.SlotType_SHARES, c.Quantum)
	if err != nil || q == 0 || q > 1000 {
		return c, fmt.Errorf("config_json: quantum: %q is not between 0.001 and 1", c.Quantum)
	}
	c.quantum = q
	switch {
	case c.Enforcement == "" && library != "":
		c.Enforcement = limited
	case c.Enforcement == "":
		c.Enforcement = advisory
	case !slices.Contains([]string{advisory, limited, mps}, c.Enforcement):
		return c, fmt.Errorf("config_json: enforcement: %.40q is not advisory, limit or mps", c.Enforcement)
	case c.Enforcement == limited && library == "":
		return c, fmt.Errorf("config_json: enforcement: limit needs libberthlimit.so in ../lib of the plugin, which does not exist")
	}
	const least, most = 64 << 20, 1 << 50
	if c.UnitMem != 0 && (c.UnitMem < least || c.UnitMem > most || c.UnitMem%(1<<20) != 0) {
		return c, fmt.Errorf("config_json: unit_mem: %d is neither 0 nor %d to %d in steps of 1 MiB", c.UnitMem, least, int64(most))
	}
	if c.UnitSM < 0 || c.UnitSM > 1<<20 {
		return c, fmt.Errorf("config_json: unit_sm: %d is not 0 to %d", c.UnitSM, 1<<20)
	}
	return c, nil
}

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
