package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/nvidia/limit"
)

// vendor is the driver of this machine's GPUs. It contains the state that exists once per process
// or survives a configuration: NVML, the effects of events, and servers.
type vendor struct {
	load    func(path string) nvml.Interface
	library string // of the limit, "" = not installed
	mps     servers
	sick    ward

	turn chan struct{} // a lock with context for the use of NVML, which does not support contexts
	nvml *management
}

func newVendor(load func(string) nvml.Interface) *vendor {
	v := &vendor{load: load, turn: make(chan struct{}, 1)}
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

// use locks NVML. The caller must call release.
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

// machine is the GPUs of a host with one configuration.
type machine struct {
	*driver.Host
	vendor *vendor
	cfg    config
	begun  bool // it was scanned at least once
	last   atomic.Pointer[view]

	mu    sync.Mutex
	wires map[string]linkBytes // by id: the NVLink counters at their last read
}

// view is the result of a scan and the NVML that its handles belong to.
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

// Scan implements driver.Machine. The first scan of a configuration also clears the effects of
// events: after a reset or a repair the operator applies the configuration again.
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
	now := &view{gpus: map[string]*gpu{}}
	defer func() { m.last.Store(now) }()
	found, err := v.look(m.Host)
	if err != nil {
		return nil, err
	}
	s := &pb.DeviceSnapshot{Slots: slots(m.cfg)}
	if v.nvml != nil {
		now.nvml, s.DriverInfo = v.nvml, v.nvml.info
		m.render(s, found)
		for _, g := range found {
			now.gpus[g.id] = g
		}
	}
	return s, nil
}

// look returns the GPUs. It opens NVML if necessary. Without a driver it returns none, and NVML
// stays nil. A driver that was unloaded or upgraded no longer responds, so NVML is reopened once.
// The caller must have locked NVML.
func (v *vendor) look(h *driver.Host) (found []*gpu, err error) {
	for range 2 {
		if v.nvml == nil {
			d, err := open(v.load, h)
			if errors.Is(err, errNoDriver) {
				return nil, nil
			}
			if err != nil {
				return nil, fmt.Errorf("the driver cannot be used: %w", err)
			}
			v.nvml = d
			v.listen(d)
		}
		if found, err = v.nvml.scan(); err == nil {
			return found, nil
		}
		v.close()
	}
	return nil, fmt.Errorf("the driver no longer answers: %w", err)
}

// Check implements driver.Checker.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	release, err := m.vendor.use(ctx)
	if err != nil {
		return []*pb.Check{driver.Tried("driver", err, "", "")}
	}
	defer release()
	if m.vendor.nvml == nil {
		return []*pb.Check{driver.Checked("driver", false, "", "libnvidia-ml.so.1 cannot be loaded; it is not needed without NVIDIA hardware")}
	}
	out := []*pb.Check{driver.Checked("driver", true, m.vendor.nvml.info["driver"], "")}
	for _, n := range shared {
		_, err := m.Node(n)
		out = append(out, driver.Tried("node "+n, err, "", ""))
	}
	libs := libraries(m.Host)
	out = append(out,
		driver.Checked("libraries", len(libs) > 0, fmt.Sprintf("%d driver libraries for containers", len(libs)), "no driver libraries for containers"),
		driver.Optional(driver.Checked("limit", m.vendor.library != "", m.vendor.library, "libberthlimit.so is not installed: parts of a GPU can only be advisory")))
	if c := m.fabric(); c != nil {
		out = append(out, c)
	}
	if m.cfg.Enforcement == mps {
		file, err := findControl(m.Host)
		out = append(out, driver.Tried("mps", err, file, ""))
	}
	return out
}
