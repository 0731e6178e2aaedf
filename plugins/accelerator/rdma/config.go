package main

import (
	"fmt"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	key    = "rdma"
	whole  = "rdma.nic"
	shared = "rdma.shared"
)

// config is the plugin's section of the agent's configuration.
type config struct {
	Shared int `json:"shared"` // number of containers that can share a card with rdma.shared; 0 = not offered
}

const maxShared = 1024

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "shared": {"type": "integer", "minimum": 0, "maximum": 1024, "default": 64, "description": "How many containers may share a card, under rdma.shared; 0 = none may"}
  }
}`

func parse(raw []byte) (config, error) {
	c := config{Shared: 64}
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	if c.Shared < 0 || c.Shared > maxShared {
		return c, fmt.Errorf("config_json: shared: %d is not between 0 and %d", c.Shared, maxShared)
	}
	return c, nil
}

// vendor is the driver.
type vendor struct{}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: key, PluginVersion: "1.0.0", Vendor: "RDMA",
		Capabilities: []pb.Capability{pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE},
		Slots:        slots(maxShared), ConfigSchema: []byte(schema),
		// NVIDIA (Mellanox), Broadcom, Marvell (QLogic), Chelsio, Amazon. The vendor ids of Intel
		// and others are on every board, so their cards must be enabled in the configuration.
		PciVendors: []string{"15b3", "14e4", "1077", "1425", "1d0f"},
	}
}

// slots returns the two slots of a card.
func slots(users int) []*pb.SlotType {
	list := []*pb.SlotType{{
		Name: whole, Kind: pb.SlotType_COUNT, DisplayName: "RDMA NIC", Unit: "NIC", Icon: "nic",
		Description: "A network card with RDMA, for one container", ExclusiveWith: []string{shared},
	}}
	if users > 0 {
		list = append(list, &pb.SlotType{
			Name: shared, Kind: pb.SlotType_COUNT, DisplayName: "shared RDMA NIC", Unit: "NIC", Icon: "nic",
			Description: "A network card with RDMA that containers share",
		})
	}
	return list
}

// Open implements driver.Driver.
func (vendor) Open(h *driver.Host, raw []byte) (driver.Machine, error) {
	c, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return &machine{h, c}, nil
}
