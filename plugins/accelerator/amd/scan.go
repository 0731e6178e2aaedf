package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is one host.
type machine struct {
	host *driver.Host
	settings

	mu     sync.Mutex
	joined topology
}

// card is a PCI function, which is one die of an MI250X, with the GPU or the partitions that KFD
// lists for it.
type card struct {
	driver.PCI
	nodes []node
}

// Scan implements driver.Machine.
func (m *machine) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: []*pb.SlotType{wholeSlot}}
	nodes, broken := m.kfd()
	shown := map[int]*pb.Device{} // by KFD node
	for _, c := range m.cards(nodes) {
		if len(c.nodes) > 1 {
			m.partitioned(s, c, shown)
			continue
		}
		d := m.device(c)
		s.Devices = append(s.Devices, d)
		if len(c.nodes) == 0 {
			driver.Reject(d, "%s", m.unseen(c, broken))
			clear(broken)
			continue
		}
		m.give(d, c.nodes[0], wholeSlot)
		shown[c.nodes[0].number] = d
	}
	for _, n := range slices.Sorted(maps.Keys(broken)) {
		d := &pb.Device{Id: fmt.Sprintf("kfd-%d", n), Model: "AMD GPU"}
		driver.Reject(d, "KFD node %d: %v", n, broken[n])
		s.Devices = append(s.Devices, d)
	}
	same(nodes, shown)
	s.Links = m.links(nodes, shown)
	s.DriverInfo = m.driverInfo(len(s.Devices))
	return s, nil
}

// cards combines PCI functions and KFD nodes by address.
func (m *machine) cards(nodes []node) []card {
	var all []card
	at := map[string]int{}
	add := func(p driver.PCI) {
		at[p.Address] = len(all)
		all = append(all, card{PCI: p})
	}
	for _, p := range m.host.PCI(pciVendor) {
		// These are display controllers and processing accelerators, but not audio functions and
		// bridges.
		if kind := strings.TrimLeft(p.Class, "0"); p.Class == "" || strings.HasPrefix(kind, "3") || strings.HasPrefix(kind, "12") {
			add(p)
		}
	}
	for _, n := range nodes {
		if _, ok := at[n.address]; !ok { // its vendor or class cannot be read
			p, _ := m.host.PCIAt(n.address)
			p.Address = n.address
			add(p)
		}
		c := &all[at[n.address]]
		c.nodes = append(c.nodes, n)
	}
	slices.SortFunc(all, func(a, b card) int { return driver.ByAddress(a.PCI, b.PCI) })
	return all
}

// device returns the device of a whole card.
func (m *machine) device(c card) *pb.Device {
	d := &pb.Device{
		Id: cmp.Or(idOf(c), c.Address), Allocatable: true, Health: pb.Health_HEALTH_HEALTHY,
		Model:  cmp.Or(driver.Text(c.Dir, "product_name"), models[c.Device], older[c.Device], "AMD GPU"),
		Serial: driver.Text(c.Dir, "serial_number"),
		Attributes: filled(map[string]string{
			"firmware": driver.Text(c.Dir, "vbios_version"), "pci_device": c.Device,
			"compute_partition": driver.Text(c.Dir, "current_compute_partition"),
			"memory_partition":  driver.Text(c.Dir, "current_memory_partition"),
		}),
		Capacity: map[string]string{},
	}
	if d.Serial != "" {
		d.Groups = append(d.Groups, "card:"+d.Serial)
	}
	d.MemoryBytes, _ = driver.Uint(c.Dir, "mem_info_vram_total")
	if c.Dir == "" {
		d.PciAddress = c.Address
		driver.Reject(d, "its PCI function %s does not exist", c.Address)
		return d
	}
	c.Place(d)
	if why := m.tooOld(c.Device); why != "" {
		driver.Reject(d, "%s", why)
	}
	m.diagnose(d, c)
	return d
}

// idOf returns the GPU's serial number from the manufacturer.
func idOf(c card) string {
	id := strings.ToLower(driver.Text(c.Dir, "unique_id"))
	if n, err := strconv.ParseUint(id, 16, 64); err != nil || n == 0 {
		return ""
	}
	return id
}

// give sets the properties of a KFD node on a device.
func (m *machine) give(d *pb.Device, n node, slot *pb.SlotType) {
	d.Capacity[slot.Name] = "1"
	d.MemoryBytes = cmp.Or(n.memory, d.MemoryBytes)
	d.ProcessingUnits = uint32(min(n.units, 1<<20))
	d.Attributes["node"] = n.render()
	d.Attributes["kfd_node"] = strconv.Itoa(n.number)
	d.Attributes["architecture"] = architecture(n.version)
	if n.gpuID != 0 {
		d.Attributes["gpu_id"] = strconv.FormatUint(n.gpuID, 10)
	}
	if n.hive != 0 {
		d.Groups = append(d.Groups, fmt.Sprintf("hive:%016x", n.hive))
	}
	if !supported(n.version) && !slices.Contains(m.Additional, d.Attributes["pci_device"]) {
		driver.Reject(d, "its architecture %s is not that of MI250X or newer", architecture(n.version))
	}
	for _, name := range []string{"kfd", n.render()} {
		if _, err := m.host.Node(name); err != nil {
			driver.Reject(d, "%v", err)
		}
	}
}

// unseen returns why KFD lists no node for a card.
func (m *machine) unseen(c card, broken map[int]error) string {
	switch {
	case c.Driver != "amdgpu":
		return fmt.Sprintf("the driver amdgpu is not bound to it, but %s", cmp.Or(c.Driver, "none"))
	case len(broken) == 0:
		return "the kernel's compute driver (KFD) does not show it"
	}
	var why []string
	for _, n := range slices.Sorted(maps.Keys(broken)) {
		why = append(why, fmt.Sprintf("node %d: %v", n, broken[n]))
	}
	return "the kernel's compute driver (KFD) does not show it: " + strings.Join(why, "; ")
}

// same rejects devices with the same render node.
func same(nodes []node, shown map[int]*pb.Device) {
	of := map[uint64][]int{}
	for _, n := range nodes {
		of[n.minor] = append(of[n.minor], n.number)
	}
	for minor, numbers := range of {
		for _, n := range numbers {
			if d := shown[n]; d != nil && len(numbers) > 1 {
				driver.Reject(d, "%d devices have the same renderD%d", len(numbers), minor)
			}
		}
	}
}

func (m *machine) driverInfo(devices int) map[string]string {
	if devices == 0 {
		return nil
	}
	return filled(map[string]string{
		"driver": driver.Text(m.host.Sys("module/amdgpu/version")),
		"kernel": driver.Text(m.host.Proc("sys/kernel/osrelease")),
	})
}

// filled removes attributes with empty values.
func filled(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	return all
}
