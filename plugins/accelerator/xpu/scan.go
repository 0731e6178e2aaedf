package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is a host with GPUs.
type machine struct {
	*driver.Host
	settings
	now func() time.Time

	mu      sync.Mutex
	energy  map[string]joules // by device: the last read of the counter
	clients map[string]work   // by device and client: the last read of its engines
}

// integrated is the PCI address of every processor's integrated GPU.
const integrated = "0000:00:02.0"

var (
	cardForm   = regexp.MustCompile(`^card[0-9]{1,4}$`)
	renderForm = regexp.MustCompile(`^renderD[0-9]{1,4}$`)
)

// Scan implements driver.Machine.
func (m *machine) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: []*pb.SlotType{slot()}, DriverInfo: map[string]string{}}
	for _, p := range m.PCI(pciVendor) {
		if !strings.HasPrefix(p.Class, display) || p.Address == integrated && !slices.Contains(m.Additional, p.Device) {
			continue
		}
		if p.Driver != "" {
			s.DriverInfo["driver"] = p.Driver
		}
		s.Devices = append(s.Devices, m.device(p))
	}
	return s, nil
}

func (m *machine) device(p driver.PCI) *pb.Device {
	what, known := products[p.Device]
	d := &pb.Device{
		Id: p.Address, Model: cmp.Or(what.model, "Intel GPU "+p.Device), Health: pb.Health_HEALTH_HEALTHY, Allocatable: true,
		Attributes: map[string]string{"pci_device": p.Device}, Capacity: map[string]string{whole: "1"},
	}
	p.Place(d)
	virtual := driver.Exists(p.Dir, "physfn")
	if d.MemoryBytes = memory(p.Dir); d.MemoryBytes == 0 && !virtual {
		d.MemoryBytes = what.memory
	}
	if virtual {
		d.Attributes["virtual_function"] = "true"
	}
	switch n, _ := driver.Uint(p.Dir, "sriov_numvfs"); {
	case p.Device == "":
		driver.Reject(d, "its PCI device id cannot be read")
	case !known && !slices.Contains(m.Additional, p.Device):
		driver.Reject(d, "PCI device %s is not a discrete GPU that the plugin knows; the setting additional_device_ids makes it allocatable", p.Device)
	case n > 0:
		driver.Reject(d, "it has %d virtual functions, which are allocatable instead", n)
	}
	m.nodes(d, p)
	judge(d, p)
	return d
}

// memory returns the GPU's own memory according to the driver: i915 reports the total, xe that of
// each tile.
func memory(dir string) uint64 {
	for _, name := range driver.Names(dir, "drm") {
		if n, err := driver.Uint(dir, "drm", name, "lmem_total_bytes"); err == nil && cardForm.MatchString(name) {
			return n
		}
	}
	var sum uint64
	for i := range 8 {
		n, err := driver.Uint(dir, fmt.Sprint("tile", i), "physical_vram_size_bytes")
		if err != nil {
			break
		}
		sum += n
	}
	return sum
}

// nodes finds the device's files: one for compute, and one that also controls displays, from which
// programs read the GPU's properties.
func (m *machine) nodes(d *pb.Device, p driver.PCI) {
	for _, name := range driver.Names(p.Dir, "drm") {
		switch {
		case cardForm.MatchString(name):
			d.Attributes["card"] = "dri/" + name
		case renderForm.MatchString(name):
			d.Attributes["node"] = "dri/" + name
		}
	}
	switch {
	case p.Driver != "xe" && p.Driver != "i915":
		driver.Reject(d, "the driver xe or i915 is not bound to it, but %s", cmp.Or(p.Driver, "none"))
	case d.Attributes["node"] == "":
		driver.Reject(d, "the driver shows no render node for it")
	}
	for _, name := range []string{"card", "node"} {
		if file := d.Attributes[name]; file != "" {
			if _, err := m.Node(file); err != nil {
				driver.Reject(d, "%v", err)
			}
		}
	}
}

// judge sets a GPU's health from the driver and its sensors.
func judge(d *pb.Device, p driver.PCI) {
	if driver.Exists(p.Dir, "survivability_mode") {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, "its firmware must be repaired: the driver is in survivability mode"
		driver.Reject(d, "%s", d.HealthMessage)
		return
	}
	if hot, limit, err := heat(p.Dir); err == nil && limit > 0 && hot >= limit {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, fmt.Sprintf("%.0f °C, of at most %.0f", hot, limit)
		driver.Reject(d, "%s", d.HealthMessage)
	}
}
