package main

import (
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const pciVendor = "1da3"

type vendor struct{}

// product is a generation, with data of its data sheet that the driver does not report.
type product struct {
	slot, model   string
	memory, cores uint64 // cores are tensor processor cores
	ports         int    // network ports, including internal ones
}

var (
	gaudi2 = &product{"gaudi2.device", "Intel Gaudi 2", 96 << 30, 24, 24}
	gaudi3 = &product{"gaudi3.device", "Intel Gaudi 3", 128 << 30, 64, 24}
)

// products by PCI device id.
var products = map[string]*product{
	"1020": gaudi2, "1021": gaudi2,
	"1030": gaudi3, "1060": gaudi3, "1061": gaudi3, "1062": gaudi3, "1063": gaudi3,
}

// firstGaudi are the device ids of the first generation, which is not supported.
var firstGaudi = map[string]bool{"1000": true, "1001": true, "1010": true, "1011": true}

func slot(p *product) *pb.SlotType {
	return &pb.SlotType{Name: p.slot, Kind: pb.SlotType_COUNT, DisplayName: p.model[len("Intel "):], Description: p.model, Unit: "HPU", Icon: "gaudi"}
}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: "gaudi", PluginVersion: "1.0.0", Vendor: "Intel", PciVendors: []string{pciVendor}, Families: []string{"gaudi2", "gaudi3"},
		Slots: []*pb.SlotType{slot(gaudi2), slot(gaudi3)},
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE, pb.Capability_CAPABILITY_WORKLOAD_METRICS,
		},
		ConfigSchema: []byte(`{"type": "object", "additionalProperties": false, "properties": {
			"scale_out": {"type": "boolean", "default": true,
				"description": "give containers their devices' network: the verbs devices, the table of MAC addresses, gaudinet.json"},
			"sys_nice": {"type": "boolean", "default": false, "description": "ask for CAP_SYS_NICE, which the operator must allow"}
		}}`),
	}
}

// settings are config_json.
type settings struct {
	ScaleOut bool `json:"scale_out"`
	SysNice  bool `json:"sys_nice"`
}

// Open implements driver.Driver.
func (vendor) Open(h *driver.Host, config []byte) (driver.Machine, error) {
	m := &machine{host: h, settings: settings{ScaleOut: true}}
	return m, accelerator.DecodeConfig(config, &m.settings)
}
