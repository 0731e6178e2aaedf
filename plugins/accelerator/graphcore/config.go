package main

import (
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	key     = "ipu"
	version = "1.0.0"
	pciID   = "1d95"
	slot    = key + ".device"
)

// config is the plugin's section of the agent's configuration.
type config struct {
	IPUoF           string `json:"ipuof_config"` // file or directory on the host
	Infiniband      bool   `json:"infiniband"`
	FirstGeneration bool   `json:"first_generation"`
	HostIPC         bool   `json:"host_ipc"`
	IPCLock         bool   `json:"ipc_lock"`
}

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "ipuof_config": {"type": "string", "minLength": 2, "maxLength": 256, "default": "/etc/ipuof.conf.d", "description": "The host's IPUoF file, or a directory whose first *.conf is it"},
    "infiniband": {"type": "boolean", "default": true, "description": "Give containers with IPUs of an IPU-Machine the host's RDMA devices, which they then share"},
    "first_generation": {"type": "boolean", "default": false, "description": "Give away IPUs of the first generation (C2), too"},
    "host_ipc": {"type": "boolean", "default": false, "description": "Ask for the host's IPC namespace, which the agent's allow-list must grant"},
    "ipc_lock": {"type": "boolean", "default": false, "description": "Ask for CAP_IPC_LOCK, which the agent's allow-list must grant"}
  }
}`

func parse(raw []byte) (config, error) {
	c := config{IPUoF: "/etc/ipuof.conf.d", Infiniband: true}
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	return c, driver.PathSetting("ipuof_config", c.IPUoF)
}

func slots() []*pb.SlotType {
	return []*pb.SlotType{{
		Name: slot, Kind: pb.SlotType_COUNT, DisplayName: "IPU", Description: "Graphcore IPU", Unit: "IPU", Icon: "ipu",
	}}
}

// vendor is the driver.
type vendor struct{}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: key, PluginVersion: version, Vendor: "Graphcore", Slots: slots(), ConfigSchema: []byte(schema), PciVendors: []string{pciID},
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE,
			pb.Capability_CAPABILITY_WORKLOAD_METRICS, pb.Capability_CAPABILITY_PROCESS_METRICS,
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
