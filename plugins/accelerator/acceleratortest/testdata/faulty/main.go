// Command faulty is a plugin that violates the one requirement that the environment variable
// FAULT names, and satisfies all others. It proves that the suite can fail.
package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const memory = 1 << 30

var fault = os.Getenv("FAULT")

func main() { driver.Serve(faulty{}) }

type faulty struct{}

func (faulty) Describe() *pb.DescribeResponse {
	about := "A whole card"
	if fault == "undescribed slot" {
		about = ""
	}
	slot := func(name, about string) *pb.SlotType {
		return &pb.SlotType{Name: name, Kind: pb.SlotType_COUNT, DisplayName: "V", Description: about, Unit: "card", Icon: "v"}
	}
	part := func(name string, kind pb.SlotType_Kind) *pb.SlotType {
		s := slot(name, "A part of a card")
		s.Kind, s.Unified, s.ExclusiveWith = kind, true, []string{"faulty.device"}
		return s
	}
	speed := "1"
	if fault == "refuses its default" {
		speed = "-1"
	}
	return &pb.DescribeResponse{
		Key: "faulty", PluginVersion: "1", Vendor: "V", PciVendors: []string{"0bad"},
		Slots: []*pb.SlotType{slot("faulty.device", about), slot("faulty.device:half", "Half a card"),
			part("faulty.shares", pb.SlotType_SHARES), part("faulty.mem", pb.SlotType_BYTES)},
		Capabilities: []pb.Capability{pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE,
			pb.Capability_CAPABILITY_WORKLOAD_METRICS, pb.Capability_CAPABILITY_SIDE_EFFECTS, pb.Capability_CAPABILITY_FRACTIONS},
		ConfigSchema: []byte(`{"type": "object", "properties": {"speed": {"type": "integer", "default": ` + speed + `}}}`),
	}
}

func (faulty) Open(h *driver.Host, config []byte) (driver.Machine, error) {
	var c struct {
		Speed int `json:"speed"`
	}
	if err := accelerator.DecodeConfig(config, &c); err != nil {
		return nil, err
	}
	if c.Speed < 0 {
		return nil, errors.New("config_json: speed: below 0")
	}
	return &machine{Host: h}, nil
}

type machine struct {
	*driver.Host
	first *pb.DeviceSnapshot
}

func (m *machine) Scan(ctx context.Context) (*pb.DeviceSnapshot, error) {
	if fault == "scans only once" && m.first != nil {
		return m.first, nil
	}
	s := &pb.DeviceSnapshot{Slots: faulty{}.Describe().Slots}
	if err := m.smi(ctx); err != nil {
		return nil, err
	}
	for i, card := range driver.Names(m.Sys("class/faulty")) {
		if fault == "overlooks a card" && i == 1 {
			continue
		}
		d := &pb.Device{Id: card, Model: "V", MemoryBytes: memory, Allocatable: true, Health: pb.Health_HEALTH_HEALTHY,
			Attributes: map[string]string{"node": card}, Capacity: map[string]string{"faulty.device": "1"}}
		switch state := driver.Text(m.Sys("class/faulty", card, "state")); {
		case state != "ok" && state != "failed" && fault == "gives up at one broken file":
			return nil, errors.New("a file is broken")
		case state != "ok" && state != "failed" && fault == "crashes at one broken file":
			os.Exit(3)
		case state != "ok" && fault != "reports failed cards as healthy":
			d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, "it has failed"
			driver.Reject(d, "it has failed")
		}
		s.Devices = append(s.Devices, d)
		if card == "v0" {
			m.cut(s, d)
		}
		if card == "v1" {
			d.Capacity["faulty.shares"], d.Capacity["faulty.mem"] = "1", strconv.Itoa(memory)
		}
	}
	m.first = s
	return s, nil
}

// cut adds partitions of a card, each with half of its capacity.
func (m *machine) cut(s *pb.DeviceSnapshot, d *pb.Device) {
	s.Counters = append(s.Counters, &pb.CounterSet{Name: d.Id, Counters: map[string]string{"slices": "2"}})
	d.Consumes = []*pb.CounterUse{{Set: d.Id, Amounts: map[string]string{"slices": "2"}}}
	size := uint64(memory / 2)
	if fault == "counters that let halves overlap" {
		size = memory
	}
	for _, half := range []string{"/a", "/b"} {
		s.Devices = append(s.Devices, &pb.Device{Id: d.Id + half, ParentId: d.Id, Model: "V/2", MemoryBytes: size,
			Allocatable: d.Allocatable, RejectReasons: d.RejectReasons, Health: d.Health, HealthMessage: d.HealthMessage,
			Attributes: d.Attributes, Capacity: map[string]string{"faulty.device:half": "1"},
			Consumes: []*pb.CounterUse{{Set: d.Id, Amounts: map[string]string{"slices": "1"}}}})
	}
}

func (m *machine) smi(ctx context.Context) error {
	out, err := m.Run(ctx, "faulty-smi")
	if errors.Is(err, driver.ErrNoProgram) {
		return nil
	}
	if err != nil && fault == "crashes when its program fails" && ctx.Err() == nil {
		os.Exit(3)
	}
	if fault == "leaves processes behind" {
		cmd := exec.Command("/bin/sleep", "60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return errors.Join(err, cmd.Start())
	}
	_ = out
	return err
}

// Check also runs the program.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	if fault == "waits for its program" {
		if path, err := m.Find("faulty-smi"); err == nil {
			_ = exec.Command(path).Run()
		}
	}
	return nil
}

func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{}}
	nodes := map[string]bool{}
	for _, g := range r.Grants {
		name := g.Device.GetAttributes()["node"]
		nodes[name] = true
		if fault == "hands out a neighbour's node" && name == "v1" {
			nodes["v2"] = true
		}
		size, byBytes := uint64(g.Part*float64(g.Device.GetMemoryBytes())), g.Slot.GetName() == "faulty.mem" && g.Part < 1
		switch {
		case fault == "halves that are more than all" && byBytes:
			size += memory / 20
		case fault == "refuses bytes beside shares" && byBytes:
			if held, err := filepath.Glob(m.State("*.held")); err != nil || len(held) > 0 {
				return nil, errors.New("it is given away already")
			}
		}
		out.Edits.Env = map[string]string{"FAULTY_PART": strconv.FormatFloat(g.Part, 'f', -1, 64)}
		out.Attached = append(out.Attached, &pb.AttachedDevice{DeviceId: g.Device.GetId(), Model: g.Device.GetModel(), MemoryBytes: size})
	}
	for name := range nodes {
		n, err := m.Node(name)
		if err != nil {
			return nil, err
		}
		out.Edits.DeviceNodes = append(out.Edits.DeviceNodes, n)
	}
	slices.SortFunc(out.Edits.DeviceNodes, func(a, b *pb.DeviceNode) int { return strings.Compare(a.Path, b.Path) })
	if fault == "mounts etc" {
		out.Edits.Mounts = []*pb.Mount{{Source: "/etc/ssl", Target: "/opt/ssl"}}
	}
	return out, os.WriteFile(m.State(r.GetAllocationId()+".held"), nil, 0o600)
}

func (m *machine) Undo(_ context.Context, allocation string, _ []byte) error {
	if fault == "does not undo" {
		return nil
	}
	err := os.Remove(m.State(allocation + ".held"))
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

func (m *machine) Sweep(ctx context.Context, live []*pb.LiveAllocation) ([]string, error) {
	if fault == "does not sweep" {
		return nil, nil
	}
	held, err := filepath.Glob(m.State("*.held"))
	var out []string
	for _, h := range held {
		id := strings.TrimSuffix(filepath.Base(h), ".held")
		if !slices.ContainsFunc(live, func(l *pb.LiveAllocation) bool { return l.GetAllocationId() == id }) {
			out = append(out, id)
			err = errors.Join(err, m.Undo(ctx, id, nil))
		}
	}
	return out, err
}

func (m *machine) Sample(_ context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	var out []*pb.Metric
	for _, d := range s.GetDevices() {
		out = append(out, driver.Gauge("faulty_power", d.GetId(), "watt", 100, 0, nil))
	}
	return out
}

func (m *machine) SampleWorkloads(_ context.Context, _ *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	var out []*pb.WorkloadMetrics
	watt := 50.0
	if fault == "charges more than there is" {
		watt = 500
	}
	for _, w := range set.GetWorkloads() {
		x := &pb.WorkloadMetrics{AllocationId: w.GetAllocationId()}
		for _, a := range w.GetAllocations() {
			x.Metrics = append(x.Metrics, driver.Gauge("faulty_power", a.GetDeviceId(), "watt", watt, 0, nil))
		}
		out = append(out, x)
	}
	return out
}
