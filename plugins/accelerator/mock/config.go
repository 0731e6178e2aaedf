package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// config is the plugin's section of the agent's configuration.
type config struct {
	Seed        int64             `json:"seed"`
	Devices     int               `json:"devices"`
	Model       string            `json:"model"`
	MemoryBytes int64             `json:"memory_bytes"`
	NUMANodes   int               `json:"numa_nodes"` // 0 = unknown
	Links       string            `json:"links"`      // none, ring, full
	Fractions   bool              `json:"fractions"`
	Quantum     string            `json:"quantum"`        // smallest share
	Counts      []uint32          `json:"allowed_counts"` // of mock.device; none = any
	DeviceNodes bool              `json:"device_nodes"`   // provide /dev/zero as /dev/mockN
	Load        string            `json:"load"`           // pattern of the devices' utilization
	Faults      map[string]string `json:"faults"`
}

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "seed": {"type": "integer", "description": "Same seed, same devices and measurements"},
    "devices": {"type": "integer", "minimum": 0, "maximum": 1024, "default": 2},
    "model": {"type": "string", "default": "Mock Accelerator"},
    "memory_bytes": {"type": "integer", "minimum": 1048576, "default": 17179869184},
    "numa_nodes": {"type": "integer", "minimum": 0, "maximum": 64, "default": 2, "description": "0 = unknown"},
    "links": {"enum": ["none", "ring", "full"], "default": "ring"},
    "fractions": {"type": "boolean", "default": true, "description": "Offer mock.shares and mock.mem"},
    "quantum": {"type": "string", "default": "0.01", "description": "Smallest share"},
    "allowed_counts": {"type": "array", "maxItems": 16, "items": {"type": "integer", "minimum": 1}, "description": "How many whole devices a kernel may have, growing; none = any"},
    "device_nodes": {"type": "boolean", "default": false, "description": "Hand out /dev/zero as /dev/mockN"},
    "load": {"enum": ["walk", "idle", "busy", "wave", "spikes"], "default": "walk", "description": "How busy devices are"},
    "faults": {"type": "object", "additionalProperties": {"type": "string"}, "description": "crash, hang, lie, look, unplug, unhealthy"}
  }
}`

func parse(raw []byte) (config, error) {
	c := config{Devices: 2, Model: "Mock Accelerator", MemoryBytes: 16 << 30, NUMANodes: 2, Links: "ring", Fractions: true, Quantum: "0.01", Load: "walk"}
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	q, err := accelerator.ParseAmount(pb.SlotType_SHARES, c.Quantum)
	switch {
	case c.Devices < 0 || c.Devices > accelerator.MaxDevices:
		return c, fmt.Errorf("config_json: devices: %d is not between 0 and %d", c.Devices, accelerator.MaxDevices)
	case patterns[c.Load] == nil:
		return c, fmt.Errorf("config_json: load: %.40q is none of %s", c.Load, strings.Join(slices.Sorted(maps.Keys(patterns)), ", "))
	case c.Model == "":
		return c, fmt.Errorf("config_json: model: must be set")
	case c.MemoryBytes < 1<<20 || c.MemoryBytes > accelerator.MaxAmount:
		return c, fmt.Errorf("config_json: memory_bytes: %d is not between 1048576 and %d", c.MemoryBytes, int64(accelerator.MaxAmount))
	case c.NUMANodes < 0 || c.NUMANodes > 64:
		return c, fmt.Errorf("config_json: numa_nodes: %d is not between 0 and 64", c.NUMANodes)
	case !slices.Contains([]string{"none", "ring", "full"}, c.Links):
		return c, fmt.Errorf("config_json: links: %q is not none, ring or full", c.Links)
	case len(c.Counts) > 16 || !growing(c.Counts):
		return c, fmt.Errorf("config_json: allowed_counts: %v are not up to 16 numbers above 0, growing", c.Counts)
	case err != nil || q == 0 || q > 1000:
		return c, fmt.Errorf("config_json: quantum: %q is not between 0.001 and 1", c.Quantum)
	}
	return c, checkFaults(c.Faults)
}

func growing(counts []uint32) bool {
	for i, n := range counts {
		if n == 0 || i > 0 && n <= counts[i-1] {
			return false
		}
	}
	return true
}

func (m *mock) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	m.faults.strike("Describe")
	return &pb.DescribeResponse{
		Key: "mock", PluginVersion: "1.0.0", Vendor: "Berth",
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_FRACTIONS, pb.Capability_CAPABILITY_WORKLOAD_METRICS,
			pb.Capability_CAPABILITY_PROCESS_METRICS, pb.Capability_CAPABILITY_HEALTH,
			pb.Capability_CAPABILITY_RECONFIGURE,
		},
		Slots:        slots(config{Fractions: true, Quantum: "0.001"}),
		ConfigSchema: []byte(schema),
	}, nil
}

func (m *mock) Configure(_ context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	m.faults.strike("Configure")
	cfg, err := parse(req.GetConfigJson())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	m.mu.Lock()
	m.cfg, m.mask, m.dev = cfg, req.GetDeviceMask(), cmp.Or(req.GetRoots().GetDev(), "/dev")
	m.mu.Unlock()
	m.faults.configure(faultDir(req.GetRoots()), cfg.Faults)
	m.refresh(true)
	m.once.Do(func() { go m.follow() })
	return &pb.ConfigureResponse{}, nil
}

// faultDir returns the directory of fault files: on a simulated machine with a driver root, it is
// there.
func faultDir(r *pb.Roots) string {
	switch driver, state := r.GetDriver(), r.GetState(); {
	case driver != "" && driver != "/":
		return filepath.Join(driver, "mock/faults")
	case state != "":
		return filepath.Join(state, "faults")
	}
	return ""
}

// follow applies fault files to new snapshots for the life of the process.
func (m *mock) follow() {
	for range time.Tick(100 * time.Millisecond) {
		m.faults.crash()
		m.refresh(false)
	}
}

func (m *mock) Preflight(context.Context, *pb.PreflightRequest) (*pb.PreflightResponse, error) {
	m.faults.strike("Preflight")
	s, err := m.feed.Ready()
	if err != nil {
		return nil, err
	}
	l := s.GetLook()
	return &pb.PreflightResponse{
		Checks: []*pb.Check{{
			Name: "driver", Ok: l.GetMessage() == "", Optional: l.GetState() == pb.Look_PARTIAL,
			Detail: cmp.Or(l.GetMessage(), fmt.Sprintf("%d imaginary devices", len(s.GetDevices()))),
		}},
		DriverInfo: map[string]string{"driver": "mock 1.0.0"},
	}, nil
}
