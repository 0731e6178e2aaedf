package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/hashicorp/go-hclog"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/nvidia/limit"
)

// vendor is the driver of this machine's GPUs. It has what a process has once and
// what outlives a configuration: NVML, what events said, and servers.
type vendor struct {
	load    func(path string) nvml.Interface
	log     hclog.Logger
	library string // that keeps limits, "" = not installed
	mps     servers
	sick    ward

	turn chan struct{} // is held by who uses NVML, which knows no context
	nvml *management
}

func newVendor(load func(string) nvml.Interface, log hclog.Logger) *vendor {
	v := &vendor{load: load, log: log, turn: make(chan struct{}, 1)}
	if self, err := os.Executable(); err == nil {
		v.library = limit.Find(self)
	}
	return v
}

func (*vendor) Describe() *pb.DescribeResponse {
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

func (v *vendor) Open(h *driver.Host, raw []byte) (driver.Machine, error) {
	cfg, err := parse(raw, v.library)
	if err != nil {
		return nil, err
	}
	return &machine{Host: h, vendor: v, cfg: cfg}, nil
}

// use takes NVML for itself. The caller gives it back.
func (v *vendor) use(ctx context.Context) (release func(), err error) {
	select {
	case v.turn <- struct{}{}:
		return func() { <-v.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("NVML does not answer: %w", ctx.Err())
	}
}

func (v *vendor) close() {
	if v.nvml != nil {
		v.nvml.close()
		v.nvml = nil
	}
}

// machine is the GPUs of a host under one configuration.
type machine struct {
	*driver.Host
	vendor *vendor
	cfg    config
	begun  bool // it has been looked at; whoever has NVML's turn may ask
	last   atomic.Pointer[view]
}

// view is what was found, and the NVML that its handles are of.
type view struct {
	nvml *management
	gpus map[string]*gpu // by id
}

func (m *machine) gpu(id string) *gpu {
	if v := m.last.Load(); v != nil {
		return v.gpus[id]
	}
	return nil
}

// Scan implements driver.Machine. The first of a configuration also forgets the
// errors that events have reported: after a reset or a repair the operator applies
// the configuration again.
func (m *machine) Scan(ctx context.Context) (*pb.DeviceSnapshot, error) {
	v := m.vendor
	release, err := v.use(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if !m.begun {
		v.sick.clear()
		m.begun = true
	}
	if v.nvml != nil && !v.nvml.serves(m.Host) {
		v.close()
	}
	if v.nvml == nil {
		d, err := open(v.load, m.Host)
		if err == nil {
			v.nvml = d
			v.listen(d)
		} else if !errors.Is(err, errNoDriver) {
			v.log.Warn("driver cannot be used", "error", err)
		}
	}
	s := &pb.DeviceSnapshot{Slots: slots(m.cfg)}
	now := &view{gpus: map[string]*gpu{}}
	if v.nvml != nil {
		found, err := v.nvml.scan()
		if err != nil { // the driver was unloaded or upgraded: begin again
			v.log.Warn("driver no longer answers", "error", err)
			v.close()
		} else {
			now.nvml, s.DriverInfo = v.nvml, v.nvml.info
			m.render(s, found)
			for _, g := range found {
				now.gpus[g.id] = g
			}
		}
	}
	m.last.Store(now)
	return s, nil
}

// Check implements driver.Checker.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	release, err := m.vendor.use(ctx)
	if err != nil {
		return []*pb.Check{driver.Tried("driver", err, "", "")}
	}
	defer release()
	if m.vendor.nvml == nil {
		return []*pb.Check{driver.Checked("driver", false, "", "libnvidia-ml.so.1 cannot be loaded; without NVIDIA hardware nothing is missing")}
	}
	out := []*pb.Check{driver.Checked("driver", true, m.vendor.nvml.info["driver"], "")}
	for _, n := range []string{"nvidiactl", "nvidia-uvm"} {
		_, err := m.Node(n)
		out = append(out, driver.Tried("node "+n, err, "", ""))
	}
	libs := libraries(m.Host)
	out = append(out,
		driver.Checked("libraries", len(libs) > 0, fmt.Sprintf("%d driver libraries for containers", len(libs)), "no driver libraries for containers"),
		driver.Checked("limit", m.vendor.library != "", m.vendor.library, "libberthlimit.so is not installed: parts of a GPU can only be advisory"))
	if m.cfg.Enforcement == mps {
		file, err := findControl(m.Host)
		out = append(out, driver.Tried("mps", err, file, ""))
	}
	return out
}
