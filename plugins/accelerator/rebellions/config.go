package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	key     = "rebellions"
	version = "1.0.0"
	pciID   = "1eff"
)

// config is the plugin's section of the agent's configuration.
type config struct {
	LockFile    string   `json:"lock_file"`
	GroupSingle bool     `json:"group_single"`
	Libraries   bool     `json:"libraries"`
	BadStatus   []string `json:"bad_status"`
}

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "lock_file": {"type": "string", "minLength": 2, "maxLength": 256, "default": "/var/run/rbln-device-plugin.lock", "description": "Held while RSD groups are looked at and changed; the vendor's device plugin holds the same one"},
    "group_single": {"type": "boolean", "default": true, "description": "An RSD group of its own for a single NPU, too; false leaves it in group 0, which all such containers share"},
    "libraries": {"type": "boolean", "default": true, "description": "Mount the host's librbln-*.so and rbln-smi"},
    "bad_status": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 32, "default": ["error", "fault", "fail", "failed", "offline", "lost", "hang"], "description": "States of rbln-smi in which an NPU is unhealthy"}
  }
}`

func parse(raw []byte) (config, error) {
	c := config{
		LockFile: "/var/run/rbln-device-plugin.lock", GroupSingle: true, Libraries: true,
		BadStatus: []string{"error", "fault", "fail", "failed", "offline", "lost", "hang"},
	}
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	if err := driver.PathSetting("lock_file", c.LockFile); err != nil {
		return c, err
	}
	if len(c.BadStatus) > 32 || slices.Contains(c.BadStatus, "") {
		return c, fmt.Errorf("config_json: bad_status: %d states, at most 32, none empty", len(c.BadStatus))
	}
	return c, nil
}

func (c config) bad(status string) bool {
	return slices.ContainsFunc(c.BadStatus, func(s string) bool { return strings.EqualFold(s, status) })
}

// vendor is the driver.
type vendor struct{}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: key, PluginVersion: version, Vendor: "Rebellions", Families: []string{"atom", "atom-plus", "atom-max"},
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE, pb.Capability_CAPABILITY_SIDE_EFFECTS,
			pb.Capability_CAPABILITY_WORKLOAD_METRICS, pb.Capability_CAPABILITY_PROCESS_METRICS,
		},
		Slots: slots(), ConfigSchema: []byte(schema), PciVendors: []string{pciID},
	}
}

func slots() []*pb.SlotType {
	slot := func(name, display string) *pb.SlotType {
		return &pb.SlotType{Name: name, Kind: pb.SlotType_COUNT, DisplayName: display, Description: "Rebellions " + display, Unit: "NPU", Icon: "rebel"}
	}
	return []*pb.SlotType{slot("atom.device", "ATOM"), slot("atom-plus.device", "ATOM+"), slot("atom-max.device", "ATOM Max")}
}

// Open implements driver.Driver.
func (vendor) Open(h *driver.Host, raw []byte) (driver.Machine, error) {
	c, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return &machine{Host: h, config: c, turn: make(chan struct{}, 1)}, nil
}

// product returns the slot of a model and whether several NPUs are one card.
func product(name string) (slot, model string, card bool) {
	name = strings.ToUpper(name)
	switch {
	case name == "ATOM" || strings.HasPrefix(name, "RBLN-CA02"):
		return "atom.device", "ATOM", false
	case strings.HasPrefix(name, "RBLN-CA12") || strings.HasPrefix(name, "RBLN-CA22"):
		return "atom-plus.device", "ATOM+", false
	case strings.HasPrefix(name, "RBLN-CA25"):
		return "atom-max.device", "ATOM Max", true
	}
	return "", "", false
}
