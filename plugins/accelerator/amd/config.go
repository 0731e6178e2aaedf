package main

import (
	"context"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	pciVendor = "1002"
	whole     = "rocm.device"
)

type vendor struct{}

var wholeSlot = &pb.SlotType{Name: whole, Kind: pb.SlotType_COUNT, DisplayName: "GPU", Description: "AMD Instinct GPU", Unit: "GPU", Icon: "rocm"}

// partSlot returns the slot of partitions in a compute mode, such as cpx.
func partSlot(mode string) *pb.SlotType {
	return &pb.SlotType{
		Name: whole + ":" + mode + "-part", Kind: pb.SlotType_UNIQUE, ExclusiveWith: []string{whole},
		DisplayName: "GPU partition", Description: "Partition of an AMD Instinct GPU", Unit: "partition", Icon: "rocm",
	}
}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: "rocm", PluginVersion: "1.0.0", Vendor: "AMD", PciVendors: []string{pciVendor},
		Slots: []*pb.SlotType{wholeSlot, partSlot("*")},
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE, pb.Capability_CAPABILITY_PARTITIONS,
			pb.Capability_CAPABILITY_WORKLOAD_METRICS, pb.Capability_CAPABILITY_PROCESS_METRICS,
		},
		ConfigSchema: []byte(`{"type": "object", "additionalProperties": false, "properties": {
			"additional_device_ids": {"type": "array", "maxItems": 64, "default": [], "items": {"type": "string", "pattern": "^[0-9a-f]{4}$"},
				"description": "PCI device ids to give away besides MI250X and newer, such as 740f for MI210"},
			"numa_syscalls": {"type": "boolean", "default": false,
				"description": "let programs choose the NUMA node of their memory; the operator must allow get_mempolicy, mbind and set_mempolicy"}
		}}`),
	}
}

// settings are config_json.
type settings struct {
	Additional   []string `json:"additional_device_ids"`
	NUMASyscalls bool     `json:"numa_syscalls"`
}

// Open implements driver.Driver.
func (vendor) Open(h *driver.Host, config []byte) (driver.Machine, error) {
	m := &machine{host: h}
	if err := accelerator.DecodeConfig(config, &m.settings); err != nil {
		return nil, err
	}
	if err := driver.DeviceIDsSetting("additional_device_ids", m.Additional); err != nil {
		return nil, err
	}
	return m, nil
}

// Check implements driver.Checker.
func (m *machine) Check(context.Context) []*pb.Check {
	_, err := m.host.Node("kfd")
	return []*pb.Check{
		driver.Checked("driver", driver.Exists(m.host.Sys("module/amdgpu")), "amdgpu is loaded", "amdgpu is not loaded"),
		driver.Tried("device-nodes", err, "/dev/kfd exists", ""),
	}
}
