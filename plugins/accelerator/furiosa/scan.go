package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is a host with NPUs.
type machine struct {
	*driver.Host
	config config

	mu   sync.Mutex
	work map[string]work // of processing elements, by directory
}

// card describes how the driver represents one of the two products.
type card struct {
	number string // number of npu0
	dir    string // of its attributes
	slot   string
	model  string
	// These come from the product's data sheet, because the drivers do not report them.
	memory   uint64
	elements uint32
}

const (
	gib      = 1 << 30
	elements = 8 // of an RNGD
)

var (
	rngdEntry   = regexp.MustCompile(`^rngd!npu([0-9]{1,3})mgmt$`)
	warboyEntry = regexp.MustCompile(`^npu([0-9]{1,3})_mgmt$`)
	idForm      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{3,63}$`)
)

// cards returns the cards that the drivers list.
func (m *machine) cards() []card {
	var out []card
	for _, entry := range driver.Names(m.Sys("class/rngd_mgmt")) {
		if found := rngdEntry.FindStringSubmatch(entry); found != nil {
			out = append(out, card{found[1], m.Sys("class/rngd_mgmt", entry), rngdSlot, "RNGD", 48 * gib, elements})
		}
	}
	for _, entry := range driver.Names(m.Sys("class/npu_mgmt")) {
		if found := warboyEntry.FindStringSubmatch(entry); found != nil {
			out = append(out, card{found[1], m.Sys("class/npu_mgmt", entry), warboySlot, "Warboy", 16 * gib, 2})
		}
	}
	return out
}

// Scan implements driver.Machine.
func (m *machine) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: slots(m.config.Groups), DriverInfo: map[string]string{}}
	served := map[string]bool{}
	for _, c := range m.cards() {
		d := m.device(c)
		served[d.GetPciAddress()] = true
		if v := driver.Text(c.dir, "version"); v != "" {
			s.DriverInfo["driver"] = v
		}
		s.Devices = append(s.Devices, d)
		if c.slot == rngdSlot {
			m.cut(s, d)
			m.count(d)
		}
	}
	for _, p := range m.PCI(pciID) {
		if served[p.Address] {
			continue
		}
		d := &pb.Device{Id: p.Address, Model: "FuriosaAI NPU", Health: pb.Health_HEALTH_UNKNOWN}
		p.Place(d)
		driver.Reject(d, "no driver of FuriosaAI is bound to it")
		s.Devices = append(s.Devices, d)
	}
	s.Links = links(s.Devices)
	return s, nil
}

// device returns the device of a card.
func (m *machine) device(c card) *pb.Device {
	d := &pb.Device{
		Model: "FuriosaAI " + c.model, Health: pb.Health_HEALTH_HEALTHY, Allocatable: true,
		MemoryBytes: c.memory, ProcessingUnits: c.elements,
		Capacity: map[string]string{c.slot: "1"}, Attributes: map[string]string{"number": c.number},
	}
	bus := strings.ToLower(driver.Text(c.dir, "busname"))
	if pci, ok := m.PCIAt(bus); ok {
		pci.Place(d)
	} else {
		driver.Reject(d, "busname is %q, which is not on the bus", bus)
	}
	identify(d, c)
	for name, file := range map[string]string{"firmware": "fw_version", "device_type": "device_type"} {
		if v := driver.Text(c.dir, file); v != "" {
			d.Attributes[name] = v
		}
	}
	switch platform := driver.Text(c.dir, "platform_type"); {
	case platform == "FuriosaAI" || m.config.FPGA && platform == "VITIS":
	case platform == "VITIS":
		driver.Reject(d, "it is an FPGA (VITIS); the setting fpga makes it allocatable")
	default:
		driver.Reject(d, "platform_type is %q, and should be FuriosaAI", platform)
	}
	if _, err := m.nodes(d); err != nil {
		driver.Reject(d, "%v", err)
	}
	// The file contains "1" while the firmware works. Some drivers do not have it.
	if driver.Exists(c.dir, "alive") {
		if alive := driver.Text(c.dir, "alive"); alive != "1" {
			d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, fmt.Sprintf("the driver reports it as not alive: %q", alive)
			driver.Reject(d, "%s", d.HealthMessage)
		}
	}
	return d
}

// identify sets the id of a card: its uuid, or else its serial number or its address.
func identify(d *pb.Device, c card) {
	id := func(file string) string {
		v := driver.Text(c.dir, file)
		if v != "" && !idForm.MatchString(v) {
			driver.Reject(d, "%s is %q", file, v)
			return ""
		}
		if strings.Trim(v, "0-") == "" {
			return ""
		}
		return v
	}
	d.Id = d.GetPciAddress()
	if d.Id == "" {
		d.Id = strings.ToLower(c.model) + "-" + c.number
	}
	if d.Serial = id("device_sn"); d.Serial != "" {
		d.Id = d.Serial
	}
	if uuid := id("device_uuid"); uuid != "" {
		d.Id = uuid
	}
}

// links returns links between cards below the same PCI root.
func links(devices []*pb.Device) []*pb.Link {
	var out []*pb.Link
	for i, a := range devices {
		for _, b := range devices[i+1:] {
			if a.GetParentId() == "" && b.GetParentId() == "" && a.GetPcieRoot() != "" && a.GetPcieRoot() == b.GetPcieRoot() {
				out = append(out, &pb.Link{A: a.GetId(), B: b.GetId(), Type: pb.Link_PCIE, Distance: 10})
			}
		}
	}
	return out
}
