package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/nvidia/limit"
)

// rescanEvery keeps changes of the hardware within the contract's 5 seconds.
const rescanEvery = 3 * time.Second

// plugin serves the contract for the GPUs of this machine.
type plugin struct {
	pb.UnimplementedAcceleratorServer
	load    func(path string) nvml.Interface
	log     hclog.Logger
	library string // that keeps limits, "" = not installed

	feed   accelerator.Feed
	ledger accelerator.Ledger
	sick   ward
	mps    servers
	once   sync.Once

	mu   sync.Mutex
	cfg  config
	host *driver.Host
	mask []string
	nvml *management
	gpus map[string]*gpu // of the present snapshot, by id
}

func newPlugin(load func(string) nvml.Interface, log hclog.Logger) *plugin {
	p := &plugin{load: load, log: log}
	if self, err := os.Executable(); err == nil {
		p.library = limit.Find(self)
	}
	return p
}

func (p *plugin) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return describe(), nil
}

func describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: "cuda", PluginVersion: "1.0.0", Vendor: "NVIDIA",
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_FRACTIONS, pb.Capability_CAPABILITY_PARTITIONS,
			pb.Capability_CAPABILITY_WORKLOAD_METRICS, pb.Capability_CAPABILITY_PROCESS_METRICS,
			pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_SIDE_EFFECTS,
			pb.Capability_CAPABILITY_RECONFIGURE,
		},
		Slots:        append(slots(config{Fractions: true, Quantum: "0.001"}), migSlot("*")),
		ConfigSchema: []byte(schema),
		PciVendors:   []string{vendorID},
	}
}

// Configure also forgets the errors that events have reported: after a reset or
// a repair the operator applies the configuration again.
func (p *plugin) Configure(_ context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	cfg, err := parse(req.GetConfigJson(), p.library)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if req.GetDryRun() {
		return &pb.ConfigureResponse{}, nil
	}
	p.mu.Lock()
	next := driver.NewHost(req.GetRoots())
	if p.nvml != nil && next.Root() != p.host.Root() {
		p.nvml.close()
		p.nvml = nil
	}
	p.cfg, p.host, p.mask = cfg, next, req.GetDeviceMask()
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
	if p.nvml == nil {
		note("driver", false, "libnvidia-ml.so.1 cannot be loaded; without NVIDIA hardware nothing is missing")
		return out, nil
	}
	note("driver", true, s.GetDriverInfo()["driver"])
	for _, n := range []string{"nvidiactl", "nvidia-uvm"} {
		_, err := p.host.Node(n)
		note("node "+n, err == nil, detail(err))
	}
	libs := libraries(p.host)
	note("libraries", len(libs) > 0, fmt.Sprintf("%d driver libraries for containers", len(libs)))
	note("limit", p.library != "", cmp.Or(p.library, "libberthlimit.so is not installed: parts of a GPU can only be advisory"))
	if p.cfg.Enforcement == mps {
		file, err := findControl(p.host)
		note("mps", err == nil, cmp.Or(detail(err), file))
	}
	return out, nil
}

func detail(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
