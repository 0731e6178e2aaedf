package main

import (
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	key     = "groq"
	version = "1.0.0"
	pciID   = "1de0"
	slot    = key + ".device"
)

// config is the plugin's section of the agent's configuration.
type config struct {
	Runtime    string `json:"runtime"` // directory of the host's runtime; empty = the image contains it
	Hugepages  bool   `json:"hugepages"`
	OtherCards bool   `json:"other_cards"`
}

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "runtime": {"type": "string", "maxLength": 256, "default": "/opt/groq/runtime", "description": "Directory of the vendor's runtime on the host, which containers get to read; empty = images bring their own"},
    "hugepages": {"type": "boolean", "default": false, "description": "Mount the host's huge pages, which all containers with a card then share"},
    "other_cards": {"type": "boolean", "default": false, "description": "Offer boards with a GroqChip that are not GroqCards, too"}
  }
}`

func parse(raw []byte) (config, error) {
	c := config{Runtime: "/opt/groq/runtime"}
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	if c.Runtime != "" {
		return c, driver.PathSetting("runtime", c.Runtime)
	}
	return c, nil
}

func slots() []*pb.SlotType {
	return []*pb.SlotType{{
		Name: slot, Kind: pb.SlotType_COUNT, DisplayName: "GroqCard", Description: "Inference card with one GroqChip", Unit: "card", Icon: "npu_generic",
	}}
}

// vendor is the driver.
type vendor struct{}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: key, PluginVersion: version, Vendor: "Groq", Slots: slots(), ConfigSchema: []byte(schema), PciVendors: []string{pciID},
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE, pb.Capability_CAPABILITY_WORKLOAD_METRICS,
		},
	}
}

// Open implements driver.Driver.
func (vendor) Open(h *driver.Host, raw []byte) (driver.Machine, error) {
	c, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return &machine{h, c}, nil
}
