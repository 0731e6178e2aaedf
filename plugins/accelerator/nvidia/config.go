package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// rescanEvery keeps changes of the hardware within the contract's 5 seconds.
const rescanEvery = 3 * time.Second

// config is the plugin's section of the agent's configuration.
type config struct {
	MinComputeCapability string `json:"min_compute_capability"`
	Fractions            bool   `json:"fractions"`
	Quantum              string `json:"quantum"`

	minMajor, minMinor int
}

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "min_compute_capability": {"type": "string", "pattern": "^[0-9]+\\.[0-9]+$", "default": "7.5", "description": "Older devices are shown and not given away"},
    "fractions": {"type": "boolean", "default": true, "description": "Offer cuda.shares and cuda.mem"},
    "quantum": {"type": "string", "default": "0.01", "description": "Smallest share of a device"}
  }
}`

func parse(raw []byte) (config, error) {
	c := config{MinComputeCapability: "7.5", Fractions: true, Quantum: "0.01"}
	if err := accelerator.DecodeConfig(raw, &c); err != nil {
		return c, err
	}
	if _, err := fmt.Sscanf(c.MinComputeCapability+"\n", "%d.%d\n", &c.minMajor, &c.minMinor); err != nil {
		return c, fmt.Errorf("config_json: min_compute_capability: %q is not like 7.5", c.MinComputeCapability)
	}
	if q, err := accelerator.ParseAmount(pb.SlotType_SHARES, c.Quantum); err != nil || q == 0 || q > 1000 {
		return c, fmt.Errorf("config_json: quantum: %q is not between 0.001 and 1", c.Quantum)
	}
	return c, nil
}

// plugin serves the contract for the GPUs of this machine.
type plugin struct {
	pb.UnimplementedAcceleratorServer
	load func(path string) nvml.Interface
	log  hclog.Logger

	feed   accelerator.Feed
	ledger accelerator.Ledger
	sick   ward
	once   sync.Once

	mu     sync.Mutex
	cfg    config
	roots  roots
	mask   []string
	driver *driver
	gpus   map[string]*gpu // of the present snapshot, by id
}

func newPlugin(load func(string) nvml.Interface, log hclog.Logger) *plugin {
	return &plugin{load: load, log: log}
}

// roots are where the host's files are.
type roots struct{ sys, dev, proc, driver string }

func rootsOf(r *pb.Roots) roots {
	return roots{
		sys: cmp.Or(r.GetSys(), "/sys"), dev: cmp.Or(r.GetDev(), "/dev"),
		proc: cmp.Or(r.GetProc(), "/proc"), driver: cmp.Or(r.GetDriver(), "/"),
	}
}

func (p *plugin) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{
		Key: "cuda", PluginVersion: "1.0.0", Vendor: "NVIDIA",
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_FRACTIONS, pb.Capability_CAPABILITY_PARTITIONS,
			pb.Capability_CAPABILITY_WORKLOAD_METRICS, pb.Capability_CAPABILITY_PROCESS_METRICS,
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE,
		},
		Slots:        append(slots(config{Fractions: true, Quantum: "0.001"}), migSlot("*")),
		ConfigSchema: []byte(schema),
		PciVendors:   []string{"10de"},
	}, nil
}

// Configure also forgets the errors that events have reported: after a reset or
// a repair the operator applies the configuration again.
func (p *plugin) Configure(_ context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	cfg, err := parse(req.GetConfigJson())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if req.GetDryRun() {
		return &pb.ConfigureResponse{}, nil
	}
	p.mu.Lock()
	next := rootsOf(req.GetRoots())
	if p.driver != nil && next != p.roots {
		p.driver.close()
		p.driver = nil
	}
	p.cfg, p.roots, p.mask = cfg, next, req.GetDeviceMask()
	p.sick.clear()
	p.mu.Unlock()
	p.refresh()
	p.once.Do(func() { go p.follow() })
	return &pb.ConfigureResponse{}, nil
}

// follow looks for changes for the life of the process.
func (p *plugin) follow() {
	for range time.Tick(rescanEvery) {
		p.refresh()
	}
}

func (p *plugin) WatchDevices(_ *pb.WatchDevicesRequest, out pb.Accelerator_WatchDevicesServer) error {
	return p.feed.Watch(out.Context(), out.Send)
}

func (p *plugin) WatchHealth(_ *pb.WatchHealthRequest, out pb.Accelerator_WatchHealthServer) error {
	return p.feed.WatchHealth(out.Context(), out.Send)
}

func (p *plugin) Preflight(context.Context, *pb.PreflightRequest) (*pb.PreflightResponse, error) {
	s, err := p.feed.Ready()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := &pb.PreflightResponse{DriverInfo: s.GetDriverInfo()}
	note := func(name string, ok bool, detail string) {
		out.Checks = append(out.Checks, &pb.Check{Name: name, Ok: ok, Detail: detail})
	}
	if p.driver == nil {
		note("driver", false, "libnvidia-ml.so.1 cannot be loaded; without NVIDIA hardware nothing is missing")
		return out, nil
	}
	note("driver", true, s.GetDriverInfo()["driver"])
	for _, n := range []string{"nvidiactl", "nvidia-uvm"} {
		_, err := statDevice(p.roots.dev, n)
		note("node "+n, err == nil, detail(err))
	}
	libs := p.roots.libraries()
	note("libraries", len(libs) > 0, fmt.Sprintf("%d driver libraries for containers", len(libs)))
	return out, nil
}

func detail(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
