// Command template is an accelerator plugin to copy: a whole one, for cards of
// the invented vendor ACME, whose driver shows each card as a directory
// /sys/class/acme/acmeN with the files uuid, model, memory (bytes) and busy
// (percent), and as the device file /dev/acmeN.
package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

func main() { accelerator.Serve(&plugin{}) }

// plugin answers UNIMPLEMENTED to whatever is not written here.
type plugin struct {
	pb.UnimplementedAcceleratorServer
	feed   accelerator.Feed
	ledger accelerator.Ledger
	once   sync.Once
	config atomic.Pointer[pb.ConfigureRequest]
}

func (p *plugin) sys() string { return cmp.Or(p.config.Load().GetRoots().GetSys(), "/sys") }
func (p *plugin) dev() string { return cmp.Or(p.config.Load().GetRoots().GetDev(), "/dev") }

var slot = &pb.SlotType{Name: "acme.device", Kind: pb.SlotType_COUNT, DisplayName: "ACME", Description: "A whole ACME card", Unit: "card", Icon: "npu_generic"}

func (p *plugin) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{
		Key: "acme", PluginVersion: "0.1.0", Vendor: "ACME", PciVendors: []string{"ac3e"},
		Slots:        []*pb.SlotType{slot},
		Capabilities: []pb.Capability{pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE},
	}, nil
}

func (p *plugin) Configure(_ context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	if len(req.GetConfigJson()) > 0 {
		return nil, status.Error(codes.InvalidArgument, "config_json: this plugin has no settings")
	}
	if req.GetDryRun() {
		return &pb.ConfigureResponse{}, nil
	}
	p.config.Store(req)
	p.scan()
	p.once.Do(func() { go p.follow() })
	return &pb.ConfigureResponse{}, nil
}

func (p *plugin) follow() {
	for range time.Tick(3 * time.Second) { // changes must show within 5 s
		p.scan()
	}
}

// scan reads the hardware; Feed wakes the watchers on a change.
func (p *plugin) scan() {
	s := &pb.DeviceSnapshot{Slots: []*pb.SlotType{slot}}
	cards, _ := filepath.Glob(filepath.Join(p.sys(), "class/acme/acme*")) // sorted
	for _, dir := range cards {
		d := &pb.Device{
			Id: read(dir, "uuid"), Model: cmp.Or(read(dir, "model"), "ACME card"), Health: pb.Health_HEALTH_HEALTHY,
			Attributes: map[string]string{"node": filepath.Base(dir)}, Capacity: map[string]string{slot.Name: "1"}, Allocatable: true,
		}
		if d.Id == "" { // keep what cannot be used visible, and say why
			d.Id, d.Allocatable, d.RejectReasons = filepath.Base(dir), false, []string{"its uuid cannot be read"}
		}
		d.MemoryBytes, _ = strconv.ParseUint(read(dir, "memory"), 10, 64)
		if !slices.Contains(p.config.Load().GetDeviceMask(), d.Id) {
			s.Devices = append(s.Devices, d)
		}
	}
	p.feed.Set(s)
}

func read(dir, name string) string {
	raw, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(raw))
}

func (p *plugin) Preflight(context.Context, *pb.PreflightRequest) (*pb.PreflightResponse, error) {
	s, err := p.feed.Ready()
	return &pb.PreflightResponse{Checks: []*pb.Check{{Name: "cards", Ok: true, Detail: strconv.Itoa(len(s.GetDevices())) + " found"}}}, err
}

func (p *plugin) WatchDevices(_ *pb.WatchDevicesRequest, out pb.Accelerator_WatchDevicesServer) error {
	return p.feed.Watch(out.Context(), out.Send)
}

func (p *plugin) WatchHealth(_ *pb.WatchHealthRequest, out pb.Accelerator_WatchHealthServer) error {
	return p.feed.WatchHealth(out.Context(), out.Send)
}

func (p *plugin) Prepare(_ context.Context, req *pb.PrepareRequest) (*pb.PrepareResponse, error) {
	return p.ledger.Prepare(req, func() (*pb.PrepareResponse, error) {
		grants, err := accelerator.Grants(p.feed.Snapshot(), req.GetAllocations())
		if err != nil {
			return nil, err
		}
		out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{Env: map[string]string{"ACME_CARDS": strconv.Itoa(len(grants))}}}
		for i, g := range grants { // the container counts its cards from 0
			host := filepath.Join(p.dev(), g.Device.GetAttributes()["node"])
			out.Edits.DeviceNodes = append(out.Edits.DeviceNodes, &pb.DeviceNode{Path: "/dev/acme" + strconv.Itoa(i), HostPath: host})
			out.Attached = append(out.Attached, &pb.AttachedDevice{DeviceId: g.Device.GetId(), Model: g.Device.GetModel(), MemoryBytes: g.Device.GetMemoryBytes()})
		}
		return out, nil
	})
}

func (p *plugin) Unprepare(_ context.Context, req *pb.UnprepareRequest) (*pb.UnprepareResponse, error) {
	if req.GetAllocationId() == "" {
		return nil, status.Error(codes.InvalidArgument, "allocation_id: must be set")
	}
	p.ledger.Forget(req.GetAllocationId())
	return &pb.UnprepareResponse{}, nil
}

func (p *plugin) Restore(_ context.Context, req *pb.RestoreRequest) (*pb.RestoreResponse, error) {
	s, err := p.feed.Ready()
	p.ledger.Restore(req.GetLive())
	return &pb.RestoreResponse{Problems: accelerator.RestoreProblems(s, req.GetLive())}, err
}

func (p *plugin) WatchNodeMetrics(req *pb.WatchNodeMetricsRequest, out pb.Accelerator_WatchNodeMetricsServer) error {
	return accelerator.Every(out.Context(), req.GetIntervalMs(), func() error {
		s := &pb.NodeSample{UnixMs: time.Now().UnixMilli()}
		for _, d := range p.feed.Snapshot().GetDevices() {
			m := &pb.Metric{Name: "acme_util", DeviceId: d.GetId(), Unit: "percent", Kind: pb.Metric_GAUGE, Quality: pb.Metric_UNAVAILABLE}
			busy, err := strconv.ParseFloat(read(filepath.Join(p.sys(), "class/acme", d.GetAttributes()["node"]), "busy"), 64)
			if err == nil {
				m.Value, m.Quality = busy, pb.Metric_MEASURED
			}
			s.Metrics = append(s.Metrics, m)
		}
		return out.Send(s)
	})
}
