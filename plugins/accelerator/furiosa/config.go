package main

import (
	"fmt"
	"slices"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	key     = "furiosa"
	version = "1.0.0"
	pciID   = "1ed2"

	rngdSlot   = "rngd.device"
	warboySlot = "warboy.device"
)

// config is the plugin's section of the agent's configuration.
type config struct {
	Groups []int `json:"pe_groups"`
	FPGA   bool  `json:"fpga"`
}

// groupSizes are the numbers of processing elements that the driver can fuse, smaller than a card.
var groupSizes = []int{1, 2, 4}

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "pe_groups": {"type": "array", "items": {"enum": [1, 2, 4]}, "uniqueItems": true, "default": [], "description": "Also give away groups of so many of an RNGD's eight processing elements"},
    "fpga": {"type": "boolean", "default": false, "description": "Give away boards that the driver calls an FPGA (VITIS), too"}
  }
}`

func parse(raw []byte) (config, error) {
	var c config
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	slices.Sort(c.Groups)
	for i, n := range c.Groups {
		if !slices.Contains(groupSizes, n) {
			return c, fmt.Errorf("config_json: pe_groups: %d is not 1, 2 or 4", n)
		}
		if i > 0 && c.Groups[i-1] == n {
			return c, fmt.Errorf("config_json: pe_groups: %d is listed twice", n)
		}
	}
	return c, nil
}

// vendor is the driver.
type vendor struct{}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: key, PluginVersion: version, Vendor: "FuriosaAI", Families: []string{"warboy", "rngd"},
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE,
			pb.Capability_CAPABILITY_PARTITIONS, pb.Capability_CAPABILITY_WORKLOAD_METRICS,
		},
		Slots: slots(groupSizes), ConfigSchema: []byte(schema), PciVendors: []string{pciID},
	}
}

func slots(groups []int) []*pb.SlotType {
	slot := func(name string, kind pb.SlotType_Kind, display, description, unit string) *pb.SlotType {
		return &pb.SlotType{Name: name, Kind: kind, DisplayName: display, Description: description, Unit: unit, Icon: key}
	}
	out := []*pb.SlotType{
		slot(warboySlot, pb.SlotType_COUNT, "Warboy", "FuriosaAI Warboy", "NPU"),
		slot(rngdSlot, pb.SlotType_COUNT, "RNGD", "FuriosaAI RNGD", "NPU"),
	}
	for _, n := range groups {
		out = append(out, slot(groupSlot(n), pb.SlotType_UNIQUE, fmt.Sprintf("RNGD (%d PE)", n), fmt.Sprintf("%d of an RNGD's %d processing elements", n, elements), "PE group"))
	}
	return out
}

func groupSlot(n int) string { return fmt.Sprintf("%s:%dpe", rngdSlot, n) }

// Open implements driver.Driver.
func (vendor) Open(h *driver.Host, raw []byte) (driver.Machine, error) {
	c, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return &machine{Host: h, config: c, work: map[string]work{}}, nil
}
