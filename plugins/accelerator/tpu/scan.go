package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
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

	mu   sync.Mutex
	seen map[string]seen // last metrics from containers' libraries, by device
}

// Scan implements driver.Machine.
func (m *machine) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{}
	var chips []driver.PCI
	for _, p := range m.host.PCI(pciVendor) {
		if _, _, tpu := identify(p); tpu {
			chips = append(chips, p)
		}
	}
	for _, p := range chips {
		s.Devices = append(s.Devices, m.device(p))
	}
	same(s.Devices)
	number(s.Devices)
	counts := m.Counts
	if len(counts) == 0 && len(chips) > 0 && len(chips) <= maxChips {
		counts = []uint32{uint32(len(chips))}
	}
	s.Slots = []*pb.SlotType{slot(counts)}
	s.Links = links(s.Devices)
	return s, nil
}

func (m *machine) device(p driver.PCI) *pb.Device {
	what, known, _ := identify(p)
	d := &pb.Device{
		Id: p.Address, Model: cmp.Or(what.model, "TPU"), MemoryBytes: what.memory, ProcessingUnits: uint32(what.cores),
		Attributes: map[string]string{}, Capacity: map[string]string{}, Allocatable: true, Health: pb.Health_HEALTH_HEALTHY,
	}
	p.Place(d)
	switch {
	case known:
		d.Attributes["pci_device"] = p.Device
		d.Capacity[slotName] = "1"
	case what.model != "" || p.Device == "0027":
		driver.Reject(d, "%s is older than v4, the first generation that is allocatable", d.Model)
	case p.Device == "":
		driver.Reject(d, "its PCI device id cannot be read")
	default:
		driver.Reject(d, "PCI device %s is not a known TPU", p.Device)
	}
	m.node(d, p)
	diagnose(d, p)
	return d
}

var (
	accelForm  = regexp.MustCompile(`^accel[0-9]{1,4}$`)
	lastNumber = regexp.MustCompile(`[0-9]+$`)
)

// node finds the chip's device file: that of Google's own driver, or that of its IOMMU group.
func (m *machine) node(d *pb.Device, p driver.PCI) {
	node := ""
	for _, name := range driver.Names(m.host.Sys("class/accel")) {
		to, err := filepath.EvalSymlinks(m.host.Sys("class/accel", name, "device"))
		if err == nil && to == p.Dir && accelForm.MatchString(name) {
			node = name
		}
	}
	switch {
	case node != "":
	case p.Driver == "vfio-pci" && p.Group != "":
		if _, err := strconv.ParseUint(p.Group, 10, 31); err == nil {
			node = "vfio/" + p.Group
		}
	}
	if node == "" {
		driver.Reject(d, "neither a TPU driver nor vfio-pci is bound to it, but %s", cmp.Or(p.Driver, "none"))
		return
	}
	d.Attributes["node"] = node
	for _, name := range nodes(d) {
		if _, err := m.host.Node(name); err != nil {
			driver.Reject(d, "%v", err)
		}
	}
}

// vfio is the file with which every program sets up its address space.
const vfio = "vfio/vfio"

// nodes returns the device files that a chip needs.
func nodes(d *pb.Device) []string {
	node := d.GetAttributes()["node"]
	if strings.HasPrefix(node, "vfio/") {
		return []string{node, vfio}
	}
	return []string{node}
}

// diagnose sets the health from the kernel's information about any PCI device.
func diagnose(d *pb.Device, p driver.PCI) {
	if text, err := driver.Read(p.Dir, "aer_dev_fatal"); err == nil {
		for line := range strings.Lines(text) {
			name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
			if n, err := strconv.ParseUint(count, 10, 64); err == nil && name == "TOTAL_ERR_FATAL" && n > 0 {
				d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, fmt.Sprintf("%d fatal errors on the bus", n)
				driver.Reject(d, "%s", d.HealthMessage)
				return
			}
		}
	}
	now, err := driver.Uint(p.Dir, "current_link_width")
	best, noBest := driver.Uint(p.Dir, "max_link_width")
	if err == nil && noBest == nil && now < best && best <= 32 {
		d.Health, d.HealthMessage = pb.Health_HEALTH_DEGRADED, fmt.Sprintf("its bus has %d of %d lanes", now, best)
	}
}

// same rejects chips of one IOMMU group, because access to one gives access to the other.
func same(all []*pb.Device) {
	of := map[string]int{}
	for _, d := range all {
		of[d.Attributes["node"]]++
	}
	for _, d := range all {
		if node := d.Attributes["node"]; node != "" && of[node] > 1 {
			driver.Reject(d, "%d chips share /dev/%s, and cannot be allocated separately", of[node], node)
		}
	}
}

// number sets libtpu's numbers of chips: those of their device files, which are counted from 0 on
// machines made for TPUs, or else their order on the bus.
func number(all []*pb.Device) {
	ordered := false
	for _, d := range all {
		n, err := strconv.Atoi(lastNumber.FindString(d.Attributes["node"]))
		ordered = ordered || err == nil && n >= maxChips
	}
	for i, d := range all {
		if n := lastNumber.FindString(d.Attributes["node"]); ordered {
			d.Attributes["index"] = strconv.Itoa(i)
		} else if n != "" {
			d.Attributes["index"] = n
		}
	}
}

// links returns links between the chips of a machine, which are connected directly.
func links(all []*pb.Device) []*pb.Link {
	var out []*pb.Link
	for i, a := range all {
		for _, b := range all[i+1:] {
			l := &pb.Link{A: a.Id, B: b.Id, Type: pb.Link_SAME_BOARD, Distance: 20, P2P: true}
			if a.NumaNode != nil && b.NumaNode != nil && a.GetNumaNode() == b.GetNumaNode() {
				l.Distance = 10
			}
			out = append(out, l)
		}
	}
	return out
}
