package main

import (
	"time"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	key       = "xpu"
	whole     = "xpu.device"
	pciVendor = "8086"
	display   = "03" // PCI class of display controllers
)

func slot() *pb.SlotType {
	return &pb.SlotType{Name: whole, Kind: pb.SlotType_COUNT, DisplayName: "GPU", Description: "Intel discrete GPU", Unit: "GPU", Icon: "xpu"}
}

// vendor is the driver.
type vendor struct{}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: key, PluginVersion: "1.0.0", Vendor: "Intel", Slots: []*pb.SlotType{slot()}, PciVendors: []string{pciVendor + "/" + display},
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE,
			pb.Capability_CAPABILITY_WORKLOAD_METRICS, pb.Capability_CAPABILITY_PROCESS_METRICS,
		},
		ConfigSchema: []byte(`{"type": "object", "additionalProperties": false, "properties": {
			"additional_device_ids": {"type": "array", "maxItems": 64, "default": [], "items": {"type": "string", "pattern": "^[0-9a-f]{4}$"},
				"description": "PCI device ids to offer in addition to the supported discrete GPUs"}
		}}`),
	}
}

// settings are config_json.
type settings struct {
	Additional []string `json:"additional_device_ids"`
}

// Open implements driver.Driver.
func (vendor) Open(h *driver.Host, config []byte) (driver.Machine, error) {
	m := &machine{Host: h, now: time.Now, energy: map[string]joules{}, clients: map[string]work{}}
	if err := accelerator.DecodeConfig(config, &m.settings); err != nil {
		return nil, err
	}
	if err := driver.DeviceIDsSetting("additional_device_ids", m.Additional); err != nil {
		return nil, err
	}
	return m, nil
}
