package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	pciVendor = "1ae0"
	slotName  = "tpu.device"
	maxChips  = 16 // of a host
)

type vendor struct{}

// slot returns the slot of a machine. With counts, only these numbers of chips can be allocated to
// a kernel.
func slot(counts []uint32) *pb.SlotType {
	return &pb.SlotType{
		Name: slotName, Kind: pb.SlotType_COUNT, AllowedCounts: counts,
		DisplayName: "TPU", Description: "Google TPU chip", Unit: "chip", Icon: "tpu",
	}
}

// Describe implements driver.Driver.
func (vendor) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: "tpu", PluginVersion: "1.0.0", Vendor: "Google", PciVendors: []string{pciVendor}, Slots: []*pb.SlotType{slot(nil)},
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE, pb.Capability_CAPABILITY_WORKLOAD_METRICS,
		},
		ConfigSchema: []byte(`{"type": "object", "additionalProperties": false, "properties": {
			"allowed_counts": {"type": "array", "maxItems": 16, "default": [], "items": {"type": "integer", "minimum": 1, "maximum": 16},
				"description": "how many chips a kernel may have, growing; none = all of the host's"},
			"visible_chips": {"enum": ["TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"], "default": "TPU_VISIBLE_CHIPS",
				"description": "the variable in which libtpu looks for the chips it may use"},
			"metrics_port": {"type": "integer", "minimum": 1, "maximum": 65520, "default": 8431,
				"description": "where libtpu publishes the metrics of a container's first chip; the others follow"},
			"metrics_address": {"type": "string", "default": "",
				"description": "host:port to ask of all chips instead, where programs run on the host's network"}
		}}`),
	}
}

// settings are config_json.
type settings struct {
	Counts  []uint32 `json:"allowed_counts"`
	Visible string   `json:"visible_chips"`
	Port    int      `json:"metrics_port"`
	Address string   `json:"metrics_address"`
}

func (s settings) check() error {
	if len(s.Counts) > maxChips {
		return fmt.Errorf("allowed_counts: %d are more than %d", len(s.Counts), maxChips)
	}
	for i, n := range s.Counts {
		if n < 1 || n > maxChips || i > 0 && n <= s.Counts[i-1] {
			return fmt.Errorf("allowed_counts[%d]: %d: want 1 to %d, growing", i, n, maxChips)
		}
	}
	if names := []string{"TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"}; !slices.Contains(names, s.Visible) {
		return fmt.Errorf("visible_chips: %.40q is not %s or %s", s.Visible, names[0], names[1])
	}
	if s.Port < 1 || s.Port > 65535-maxChips+1 {
		return fmt.Errorf("metrics_port: %d: want 1 to %d", s.Port, 65535-maxChips+1)
	}
	if s.Address != "" {
		_, port, err := net.SplitHostPort(s.Address)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 {
			return fmt.Errorf("metrics_address: %.80q: want host:port", s.Address)
		}
	}
	return nil
}

// Open implements driver.Driver.
func (vendor) Open(h *driver.Host, config []byte) (driver.Machine, error) {
	m := &machine{host: h, settings: settings{Visible: "TPU_VISIBLE_CHIPS", Port: 8431}, seen: map[string]seen{}}
	if err := accelerator.DecodeConfig(config, &m.settings); err != nil {
		return nil, err
	}
	return m, m.check()
}
