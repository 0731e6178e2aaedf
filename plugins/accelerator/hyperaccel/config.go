package main

import (
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	key     = "hyperaccel-lpu"
	version = "1.0.0"
	pciID   = "10ee"
	slot    = key + ".device"
)

// config is the plugin's section of the agent's configuration.
type config struct {
	Runtime   string   `json:"runtime"` // directory of the vendor's runtime on the host
	DeviceIDs []string `json:"device_ids"`
	HostIPC   bool     `json:"host_ipc"`
	IPCLock   bool     `json:"ipc_lock"`
}

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "runtime": {"type": "string", "minLength": 2, "maxLength": 256, "default": "/opt/hyperdex", "description": "Directory of the vendor's runtime on the host, which containers get to read; without it no card is taken for an LPU"},
    "device_ids": {"type": "array", "maxItems": 64, "default": [], "items": {"type": "string", "pattern": "^[0-9a-f]{4}$"}, "description": "PCI device ids of the cards' management functions, such as 505c; none = every card that xclmgmt serves"},
    "host_ipc": {"type": "boolean", "default": false, "description": "Ask for the host's IPC namespace, which the agent's allow-list must grant"},
    "ipc_lock": {"type": "boolean", "default": false, "description": "Ask for CAP_IPC_LOCK, which the agent's allow-list must grant"}
  }
}`

func parse(raw []byte) (config, error) {
	c := config{Runtime: "/opt/hyperdex"}
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	if err := driver.PathSetting("runtime", c.Runtime); err != nil {
		return c, err
	}
	return c, driver.DeviceIDsSetting("device_ids", c.DeviceIDs)
}

func slots() []*pb.SlotType {
	return []*pb.SlotType{{
		Name: slot, Kind: pb.SlotType_COUNT, DisplayName: "LPU", Description: "HyperAccel LPU", Unit: "LPU", Icon: "lpu",
	}}
}

// vendor is the driver.
type vendor struct{}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: key, PluginVersion: version, Vendor: "HyperAccel", Slots: slots(), ConfigSchema: []byte(schema), PciVendors: []string{pciID},
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
