package main

import (
	"fmt"
	"slices"
	"sync"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// The three slots of one device: whole, by thousandths, by bytes.
const (
	whole  = "mock.device"
	shares = "mock.shares"
	memory = "mock.mem"
)

type mock struct {
	pb.UnimplementedAcceleratorServer
	faults faults
	feed   accelerator.Feed
	ledger accelerator.Ledger
	once   sync.Once

	mu   sync.Mutex
	cfg  config
	mask []string
	dev  string // directory of device files
	seen string // faults in the present snapshot
}

func slots(c config) []*pb.SlotType {
	list := []*pb.SlotType{{
		Name: whole, Kind: pb.SlotType_COUNT, DisplayName: "Mock", Unit: "device", Icon: "mock",
		Description: "Whole mock device", ExclusiveWith: []string{shares, memory}, AllowedCounts: c.Counts,
	}}
	if !c.Fractions {
		return list
	}
	return append(list, &pb.SlotType{
		Name: shares, Kind: pb.SlotType_SHARES, Quantum: c.Quantum, DisplayName: "fMock", Unit: "device", Icon: "mock",
		Description: "Part of a mock device; 1 is all of it", ExclusiveWith: []string{whole}, Unified: true,
	}, &pb.SlotType{
		Name: memory, Kind: pb.SlotType_BYTES, Quantum: "1048576", DisplayName: "Mock memory", Unit: "GiB", Icon: "mock",
		Description: "Part of a mock device by its memory", ExclusiveWith: []string{whole}, Unified: true,
	})
}

// refresh creates a snapshot from the configuration and the faults, unless neither has changed.
func (m *mock) refresh(reconfigured bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.faults.of("lie", "look", "unplug", "unhealthy")
	if seen == m.seen && !reconfigured {
		return
	}
	m.seen = seen
	s := &pb.DeviceSnapshot{Slots: slots(m.cfg), DriverInfo: map[string]string{"driver": "mock 1.0.0"}}
	unplugged := m.faults.unplugged()
	n := m.cfg.Devices
	if m.cfg.DeviceNodes && !driver.Exists(m.dev, "zero") {
		n = 0 // the same file for every device
	}
	if s.Look = m.faults.look(); s.Look.GetState() > pb.Look_PARTIAL {
		n = 0
	}
	for i := range n {
		d := device(m.cfg, i)
		if slices.Contains(m.mask, d.Id) || slices.Contains(unplugged, i) {
			continue
		}
		m.faults.ail(d)
		s.Devices = append(s.Devices, d)
	}
	s.Links = links(m.cfg.Links, s.Devices)
	m.faults.lie(s)
	m.feed.Set(s)
}

func device(c config, i int) *pb.Device {
	d := &pb.Device{
		Id: fmt.Sprintf("gpu-%d", i), Model: c.Model, Serial: fmt.Sprintf("MOCK-%04X-%04d", uint16(c.Seed), i),
		PciAddress:  fmt.Sprintf("0000:%02x:00.0", i%256),
		MemoryBytes: uint64(c.MemoryBytes), ProcessingUnits: 64,
		Attributes: map[string]string{"index": fmt.Sprint(i)},
		Capacity:   map[string]string{whole: "1"},
		Health:     pb.Health_HEALTH_HEALTHY, Allocatable: true,
	}
	if c.NUMANodes > 0 {
		n := int32(i * c.NUMANodes / c.Devices)
		d.NumaNode = &n
	}
	if c.Fractions {
		d.Capacity[shares] = "1"
		d.Capacity[memory] = fmt.Sprint(c.MemoryBytes)
	}
	return d
}

func links(kind string, d []*pb.Device) []*pb.Link {
	var out []*pb.Link
	join := func(a, b *pb.Device) {
		out = append(out, &pb.Link{A: a.Id, B: b.Id, Type: pb.Link_NVLINK, Distance: 1, Gbps: 400, P2P: true})
	}
	for i := range d {
		switch {
		case kind == "ring" && len(d) > 1 && (i+1 < len(d) || len(d) > 2):
			join(d[i], d[(i+1)%len(d)])
		case kind == "full" && len(d) <= 64:
			for j := i + 1; j < len(d); j++ {
				join(d[i], d[j])
			}
		}
	}
	return out
}

func (m *mock) WatchDevices(_ *pb.WatchDevicesRequest, out pb.Accelerator_WatchDevicesServer) error {
	m.faults.strike("WatchDevices")
	return m.feed.Watch(out.Context(), out.Send)
}

func (m *mock) WatchHealth(_ *pb.WatchHealthRequest, out pb.Accelerator_WatchHealthServer) error {
	m.faults.strike("WatchHealth")
	return m.feed.WatchHealth(out.Context(), out.Send)
}
