package main

import (
	"fmt"
	"time"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	key     = "tenstorrent"
	version = "1.0.0"
	pciID   = "1e52"
)

// config is the plugin's section of the agent's configuration.
type config struct {
	OtherBoards bool `json:"other_boards"`
	Heartbeat   int  `json:"heartbeat_timeout_s"` // 0 = not monitored
	Hugepages   bool `json:"hugepages"`
	IPCLock     bool `json:"ipc_lock"`
}

const maxHeartbeat = 3600

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "other_boards": {"type": "boolean", "default": false, "description": "Give away boards that are not Wormhole, too, as tenstorrent.device"},
    "heartbeat_timeout_s": {"type": "integer", "minimum": 0, "maximum": 3600, "default": 30, "description": "A board whose firmware shows no sign of life for so long is unhealthy; 0 = not watched"},
    "hugepages": {"type": "boolean", "default": true, "description": "Mount the host's huge pages, which all containers with a board then share"},
    "ipc_lock": {"type": "boolean", "default": false, "description": "Ask for CAP_IPC_LOCK, which the agent's allow-list must grant"}
  }
}`

func parse(raw []byte) (config, error) {
	c := config{Heartbeat: 30, Hugepages: true}
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	if c.Heartbeat < 0 || c.Heartbeat > maxHeartbeat {
		return c, fmt.Errorf("config_json: heartbeat_timeout_s: %d is not between 0 and %d", c.Heartbeat, maxHeartbeat)
	}
	return c, nil
}

// vendor is the driver.
type vendor struct{}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: key, PluginVersion: version, Vendor: "Tenstorrent", Families: []string{"tt-n150", "tt-n300", "tt-galaxy"},
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE, pb.Capability_CAPABILITY_WORKLOAD_METRICS,
		},
		Slots: slots(), ConfigSchema: []byte(schema), PciVendors: []string{pciID},
	}
}

// Open implements driver.Driver.
func (vendor) Open(h *driver.Host, raw []byte) (driver.Machine, error) {
	c, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return &machine{Host: h, config: c, pulses: map[string]pulse{}, now: time.Now}, nil
}
