package main

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	key     = "sn-rdu"
	version = "1.0.0"
	whole   = key + ".device"
	part    = key + ".tile"
)

// config is the plugin's section of the agent's configuration.
type config struct {
	Nodes  []string `json:"nodes"`        // of an RDU, below /dev
	Shared []string `json:"shared_nodes"` // for every container with an RDU
	Tiles  bool     `json:"tiles"`
	Env    string   `json:"env"`  // variable with the locations of the container's devices; empty = none
	SNML   string   `json:"snml"` // address; empty = not used
	Method string   `json:"snml_method"`
}

const maxNodes = 16

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "nodes": {"type": "array", "maxItems": 16, "default": ["rdu{index}"], "items": {"type": "string", "minLength": 1, "maxLength": 128}, "description": "Device files of an RDU below /dev; {xrdu} and {rdu} are its numbers, {index} counts the host's RDUs"},
    "shared_nodes": {"type": "array", "maxItems": 16, "default": [], "items": {"type": "string", "minLength": 1, "maxLength": 128}, "description": "Device files below /dev that every container with an RDU gets"},
    "env": {"type": "string", "default": "SN_RDU_DEVICES", "pattern": "^([A-Z_][A-Z0-9_]{0,63})?$", "description": "Variable with the RDUs and tiles of a container; empty = none. The default is assumed, not documented by the vendor"},
    "tiles": {"type": "boolean", "default": false, "description": "Give away single tiles, too; nothing keeps a container to its own"},
    "snml": {"type": "string", "default": "127.0.0.1:50053", "description": "Address of the SNML server; empty = it is not asked"},
    "snml_method": {"type": "string", "default": "/snml.SNML/GetSystemPlatformInfo", "description": "gRPC path of SNML's query for the platform"}
  }
}`

var (
	envForm    = regexp.MustCompile(`^([A-Z_][A-Z0-9_]{0,63})?$`)
	nodeForm   = regexp.MustCompile(`^[A-Za-z0-9._{}-]+(/[A-Za-z0-9._{}-]+)*$`)
	methodForm = regexp.MustCompile(`^/[A-Za-z0-9_.]{1,128}/[A-Za-z0-9_]{1,128}$`)
)

// assumedNodes are a guess, because the names of device files are not public.
var assumedNodes = []string{"rdu{index}"}

func parse(raw []byte) (config, error) {
	c := config{Nodes: slices.Clone(assumedNodes), Env: "SN_RDU_DEVICES", SNML: "127.0.0.1:50053", Method: "/snml.SNML/GetSystemPlatformInfo"}
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	for name, list := range map[string][]string{"nodes": c.Nodes, "shared_nodes": c.Shared} {
		if len(list) > maxNodes {
			return c, fmt.Errorf("config_json: %s: %d are more than %d", name, len(list), maxNodes)
		}
		for i, n := range list {
			if len(n) > 128 || !nodeForm.MatchString(n) || strings.Contains(n, "..") {
				return c, fmt.Errorf("config_json: %s[%d]: %.40q: must be a path below /dev without .. of at most 128 bytes", name, i, n)
			}
		}
	}
	if c.SNML != "" {
		if _, _, err := net.SplitHostPort(c.SNML); err != nil {
			return c, fmt.Errorf("config_json: snml: %.80q is not an address and a port", c.SNML)
		}
	}
	if !envForm.MatchString(c.Env) {
		return c, fmt.Errorf("config_json: env: %.80q is not a name of at most 64 of A-Z 0-9 _", c.Env)
	}
	if !methodForm.MatchString(c.Method) {
		return c, fmt.Errorf("config_json: snml_method: %.80q: want /service/method", c.Method)
	}
	return c, nil
}

func slots() []*pb.SlotType {
	return []*pb.SlotType{
		{Name: whole, Kind: pb.SlotType_COUNT, DisplayName: "RDU", Description: "SambaNova RDU (experimental)", Unit: "RDU", Icon: "npu_generic"},
		{Name: part, Kind: pb.SlotType_COUNT, DisplayName: "RDU tile", Description: "Tile of a SambaNova RDU (experimental)", Unit: "tile", Icon: "npu_generic"},
	}
}

// vendor is the driver.
type vendor struct{}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: key, PluginVersion: version, Vendor: "SambaNova", Slots: slots(), ConfigSchema: []byte(schema),
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE, pb.Capability_CAPABILITY_PARTITIONS,
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
