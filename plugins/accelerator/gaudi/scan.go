package main

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is one host.
type machine struct {
	host *driver.Host
	settings
}

// Scan implements driver.Machine. It only reads files: if hl-smi fails, metrics are missing, but
// the devices stay allocatable.
func (m *machine) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: []*pb.SlotType{slot(gaudi2), slot(gaudi3)}}
	for _, p := range m.host.PCI(pciVendor) {
		s.Devices = append(s.Devices, m.device(p))
	}
	same(s.Devices, "node", "the device file /dev/%s")
	same(s.Devices, "module_id", "module %s")
	s.Links = links(s.Devices)
	if version := driver.Text(m.host.Sys("module/habanalabs/version")); version != "" && len(s.Devices) > 0 {
		s.DriverInfo = map[string]string{"driver": version}
	}
	return s, nil
}

var accelForm = regexp.MustCompile(`^accel([0-9]{1,4})$`)

func (m *machine) device(p driver.PCI) *pb.Device {
	d := &pb.Device{Id: p.Address, Model: "Intel Gaudi", Attributes: map[string]string{}, Capacity: map[string]string{}, Allocatable: true, Health: pb.Health_HEALTH_HEALTHY}
	p.Place(d)
	what := products[p.Device]
	switch {
	case what != nil:
		d.Model, d.MemoryBytes, d.ProcessingUnits = what.model, what.memory, uint32(what.cores)
		d.Capacity[what.slot] = "1"
	case firstGaudi[p.Device]:
		d.Model = "Habana Gaudi"
		driver.Reject(d, "the first Gaudi is older than Gaudi 2, the first generation that is allocatable")
	case p.Device == "":
		driver.Reject(d, "its PCI device id cannot be read")
	default:
		driver.Reject(d, "PCI device %s is neither Gaudi 2 nor Gaudi 3", p.Device)
	}
	for name, file := range map[string]string{"firmware": "armcp_kernel_ver", "boot_firmware": "uboot_ver", "device_type": "device_type"} {
		if v := driver.Text(p.Dir, file); v != "" {
			d.Attributes[name] = v
		}
	}
	if n, err := driver.Uint(p.Dir, "module_id"); err == nil && n < 1024 {
		d.Attributes["module_id"] = strconv.FormatUint(n, 10)
	}
	m.nodes(d, p)
	judge(d, driver.Text(p.Dir, "status"))
	return d
}

// nodes finds the device's files: for work, for control, and of its network.
func (m *machine) nodes(d *pb.Device, p driver.PCI) {
	number := ""
	for _, name := range driver.Names(p.Dir, "accel") {
		if found := accelForm.FindStringSubmatch(name); found != nil {
			number = found[1]
		}
	}
	switch {
	case number == "" && p.Driver != "habanalabs":
		driver.Reject(d, "the driver habanalabs is not bound to it, but %s", cmp.Or(p.Driver, "none"))
		return
	case number == "":
		driver.Reject(d, "the driver shows no device file for it")
		return
	}
	d.Attributes["index"] = number
	d.Attributes["node"], d.Attributes["control_node"] = "accel/accel"+number, "accel/accel_controlD"+number
	for _, name := range driver.Names(p.Dir, "infiniband_verbs") {
		if strings.HasPrefix(name, "uverbs") {
			d.Attributes["verbs_node"] = "infiniband/" + name
		}
	}
	for _, name := range []string{"node", "control_node"} {
		if _, err := m.host.Node(d.Attributes[name]); err != nil {
			driver.Reject(d, "%v", err)
		}
	}
}

// judge sets the health that the driver reports.
func judge(d *pb.Device, status string) {
	switch lower := strings.ToLower(status); {
	case status == "": // older drivers do not report a status
		d.Attributes["status"] = driver.NotReported
		return
	case lower == "operational":
		return
	case lower == "malfunction":
		d.Health = pb.Health_HEALTH_UNHEALTHY
	case strings.HasPrefix(lower, "in reset") || strings.HasPrefix(lower, "in device creation") || lower == "needs reset":
		d.Health = pb.Health_HEALTH_DEGRADED
	default:
		d.Health = pb.Health_HEALTH_UNKNOWN
	}
	d.HealthMessage = "the driver reports " + status
	driver.Reject(d, "%s", d.HealthMessage)
}

// same rejects devices with the same value of an attribute that must be unique.
func same(all []*pb.Device, attribute, what string) {
	count := map[string]int{}
	for _, d := range all {
		count[d.Attributes[attribute]]++
	}
	for _, d := range all {
		if v := d.Attributes[attribute]; v != "" && count[v] > 1 {
			driver.Reject(d, "%d devices report that "+what+" is theirs", count[v], v)
		}
	}
}

// links returns links between the modules of a baseboard, which are connected by their own network
// ports.
func links(all []*pb.Device) []*pb.Link {
	var out []*pb.Link
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.Attributes["module_id"] == "" || b.Attributes["module_id"] == "" {
				continue
			}
			l := &pb.Link{A: a.Id, B: b.Id, Type: pb.Link_SAME_BOARD, Distance: 20, P2P: true}
			if a.NumaNode != nil && b.NumaNode != nil && a.GetNumaNode() == b.GetNumaNode() {
				l.Distance = 10
			}
			out = append(out, l)
		}
	}
	return out
}
