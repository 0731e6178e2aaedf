package main

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is a host with NPUs.
type machine struct {
	*driver.Host
	config config
	turn   chan struct{} // for goroutines of this process that wait for the lock
}

var (
	busForm  = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	nodeForm = regexp.MustCompile(`^rbln[0-9]{1,4}$`)
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// Scan implements driver.Machine.
func (m *machine) Scan(ctx context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: slots(), DriverInfo: map[string]string{}}
	r, err := m.ask(ctx)
	missing := errors.Is(err, driver.ErrNoProgram)
	if err != nil && !missing {
		return nil, err
	}
	listed := map[string]bool{}
	if r != nil {
		s.DriverInfo["driver"] = string(r.Driver)
		for _, card := range cards(r) {
			for _, n := range card {
				listed[string(n.PCI.Bus)] = true
			}
			s.Devices = append(s.Devices, m.device(card))
		}
	}
	for _, p := range m.PCI(pciID) {
		if listed[p.Address] {
			continue
		}
		d := &pb.Device{Id: p.Address, Model: "Rebellions NPU", Health: pb.Health_HEALTH_UNKNOWN}
		p.Place(d)
		if missing {
			driver.Reject(d, "rbln-smi is not installed")
		} else {
			driver.Reject(d, "rbln-smi does not list it")
		}
		s.Devices = append(s.Devices, d)
	}
	return s, nil
}

// cards groups the NPUs by card.
func cards(r *report) [][]npu {
	var out [][]npu
	at := map[driver.Scalar]int{}
	for _, n := range r.NPUs {
		if _, _, card := product(string(n.Name)); card && nonzero(string(n.Card)) {
			if i, ok := at[n.Card]; ok {
				out[i] = append(out[i], n)
				continue
			}
			at[n.Card] = len(out)
		}
		out = append(out, []npu{n})
	}
	return out
}

// nonzero reports whether an id is not the zeros of test cards.
func nonzero(id string) bool { return strings.Trim(id, "0-") != "" }

// device returns the device of a card, which is usually one NPU.
func (m *machine) device(card []npu) *pb.Device {
	first := card[0]
	slot, model, whole := product(string(first.Name))
	d := &pb.Device{Model: "Rebellions " + model, Health: pb.Health_HEALTH_HEALTHY, Allocatable: true, Attributes: map[string]string{}}
	for name, v := range map[string]driver.Scalar{"firmware": first.FW, "link_speed": first.PCI.Speed, "link_width": first.PCI.Width, "product": first.Name} {
		if v != "" {
			d.Attributes[name] = string(v)
		}
	}
	identify(d, first, whole)
	if pci, ok := m.PCIAt(string(first.PCI.Bus)); ok {
		pci.Place(d)
	} else {
		d.PciAddress = string(first.PCI.Bus)
		if n, err := strconv.ParseUint(string(first.PCI.NUMA), 10, 10); err == nil {
			node := int32(n)
			d.NumaNode = &node
		}
	}
	d.ProcessingUnits = uint32(len(card))
	var buses []string
	for _, n := range card {
		buses = append(buses, string(n.PCI.Bus))
		m.judge(d, n)
	}
	d.Attributes["npus"] = strings.Join(buses, ",")
	switch {
	case slot != "":
		d.Capacity = map[string]string{slot: "1"}
	case strings.HasPrefix(strings.ToUpper(string(first.Name)), "RBLN-CR"):
		d.Model = "Rebellions REBEL"
		driver.Reject(d, "%s is a REBEL, which is not supported yet; known are ATOM, ATOM+ and ATOM Max", first.Name)
	default:
		d.Model = "Rebellions NPU"
		driver.Reject(d, "the model %q is unknown; known are RBLN-CA02, CA12, CA22 and CA25", first.Name)
	}
	return d
}

// identify sets the id of a device: the uuid of an NPU, the number of a card with several NPUs, or
// else the address.
func identify(d *pb.Device, n npu, whole bool) {
	d.Id = string(n.PCI.Bus)
	switch uuid, card := string(n.UUID), string(n.Card); {
	case whole && nonzero(card) && nameForm.MatchString(card):
		d.Id = card
	case nonzero(uuid) && nameForm.MatchString(uuid):
		d.Id = uuid
	}
	if sid := string(n.Card); nonzero(sid) && nameForm.MatchString(sid) {
		d.Serial, d.Groups = sid, []string{"card-" + sid}
	}
}

// judge adds the values of one NPU, and rejects the device if they are invalid.
func (m *machine) judge(d *pb.Device, n npu) {
	total, err := driver.Quantity(n.Memory.Total)
	if err != nil {
		driver.Reject(d, "memory.total of %s is %q", n.PCI.Bus, n.Memory.Total)
	}
	d.MemoryBytes += uint64(min(total, 1<<50))
	if !busForm.MatchString(string(n.PCI.Bus)) {
		driver.Reject(d, "pci.bus_id is %q", n.PCI.Bus)
	}
	if _, err := m.node(&n); err != nil {
		driver.Reject(d, "%v", err)
	}
	if m.config.bad(string(n.Status)) {
		d.Health = pb.Health_HEALTH_UNHEALTHY
		d.HealthMessage = string(n.PCI.Bus) + " is in state " + string(n.Status)
		driver.Reject(d, "%s", d.HealthMessage)
	}
	if n.Status != "" {
		d.Attributes["status"] = string(n.Status)
	}
}
