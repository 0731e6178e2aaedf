package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is a host with local IPUs or access to remote ones.
type machine struct {
	*driver.Host
	config config
}

// board is a product; memory and tiles of one IPU come from its data sheet.
type board struct {
	name   string // a part of gc-inventory's name of it
	model  string
	memory uint64
	tiles  uint32
}

var boards = []board{
	{"c600", "C600", 900 << 20, 1472},
	{"bow", "Bow-2000", 900 << 20, 1472},
	{"m2000", "IPU-M2000", 900 << 20, 1472},
	{"c2", first, 304 << 20, 1216},
}

const first = "C2" // of the first generation

// known are the displayed attributes of an IPU.
var known = map[string]string{
	"id": "number", "target": "target", "board type": "board", "board variant": "variant", "board ipu index": "board_index",
	"firmware version": "firmware", "driver version": "driver", "ipu architecture": "architecture", "link speed": "link_speed", "link width": "link_width",
}

// Scan implements driver.Machine.
func (m *machine) Scan(ctx context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: slots(), DriverInfo: map[string]string{}}
	all, err := m.inventory(ctx)
	if err != nil && !errors.Is(err, driver.ErrNoProgram) {
		return nil, err
	}
	var f fabric
	if slices.ContainsFunc(all, ipu.fabric) {
		f = m.fabric(ctx)
	}
	seen := map[string]bool{}
	for _, one := range all {
		d := m.device(one)
		if one.fabric() {
			f.place(d, one)
		} else {
			m.place(d, one)
		}
		seen[d.GetPciAddress()] = true
		if v := one.text("driver version"); v != "" && !one.fabric() {
			s.DriverInfo["driver"] = v
		}
		s.Devices = append(s.Devices, d)
	}
	for _, p := range m.PCI(pciID) {
		if !seen[p.Address] {
			d := &pb.Device{Id: p.Address, Model: "Graphcore card", Health: pb.Health_HEALTH_UNKNOWN}
			p.Place(d)
			if err == nil { // the same for every such card
				err = errors.New("gc-inventory does not list it")
			}
			driver.Reject(d, "%v", err)
			d.HealthMessage = d.RejectReasons[0]
			s.Devices = append(s.Devices, d)
		}
	}
	s.Links = links(s.Devices)
	return s, nil
}

// device returns the properties that local and remote IPUs have in common.
func (m *machine) device(one ipu) *pb.Device {
	d := &pb.Device{
		Id: fmt.Sprintf("ipu-%d", one.whole("id")), Model: "IPU", Health: pb.Health_HEALTH_HEALTHY,
		Allocatable: true, Capacity: map[string]string{slot: "1"}, Attributes: map[string]string{},
	}
	for from, to := range known {
		if v := one.text(from); v != "" {
			d.Attributes[to] = v
		}
	}
	if one.whole("id") < 0 {
		d.Id = "ipu-unnumbered"
		driver.Reject(d, "gc-inventory reports no number of it")
	}
	if serial := one.text("board serial number"); serial != "" {
		d.Serial, d.Groups = serial, []string{"board-" + serial}
		if id := fmt.Sprintf("%s/%d", serial, one.whole("board ipu index")); one.whole("board ipu index") >= 0 && accelerator.IsDeviceID(id) {
			d.Id = id // a board has several IPUs
		}
	}
	m.offer(d, one)
	if state := one.text("ipu error state"); state != "" && !strings.EqualFold(state, "no errors") {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, driver.Clean("gc-inventory says: "+state, 200)
		driver.Reject(d, "%s", d.HealthMessage)
	}
	return d
}

func (m *machine) offer(d *pb.Device, one ipu) {
	kind := one.text("board type")
	i := slices.IndexFunc(boards, func(b board) bool { return strings.Contains(strings.ToLower(kind), b.name) })
	if i < 0 {
		driver.Reject(d, "board type %q is not known", kind)
		return
	}
	d.Model, d.MemoryBytes, d.ProcessingUnits = boards[i].model, boards[i].memory, boards[i].tiles
	if boards[i].model == first && !m.config.FirstGeneration {
		driver.Reject(d, "IPUs of the first generation are too old; the setting first_generation makes them allocatable")
	}
}

// place finds a card's PCI function and its device files.
func (m *machine) place(d *pb.Device, one ipu) {
	address := driver.Address(one.text("pci id"))
	p, ok := m.PCIAt(address)
	if !ok || p.Vendor != pciID {
		driver.Reject(d, "its PCI address %q has no card of Graphcore", address)
		return
	}
	p.Place(d)
	if _, err := m.nodes(one.whole("id")); err != nil {
		driver.Reject(d, "%v", err)
	}
}

var nodeForm = regexp.MustCompile(`^ipu([0-9]{1,4})(_[a-z0-9]{1,16})?$`)

// nodes returns the device files of a card's IPU: ipu0, ipu0_ex and others that the driver creates
// for it.
func (m *machine) nodes(number int) ([]string, error) {
	var out []string
	for _, name := range driver.Names(m.Dev()) {
		if found := nodeForm.FindStringSubmatch(name); found == nil || found[1] != strconv.Itoa(number) {
			continue
		}
		if _, err := m.Node(name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("device file /dev/ipu%d does not exist", number)
	}
	return out, nil
}

// maxGroup is larger than any machine, so a larger group is an error.
const maxGroup = 64

// links returns links between the IPUs of a board or an IPU-Machine.
func links(devices []*pb.Device) []*pb.Link {
	groups := map[string][]string{}
	for _, d := range devices {
		for _, g := range d.GetGroups() {
			groups[g] = append(groups[g], d.GetId())
		}
	}
	var out []*pb.Link
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		if len(groups[g]) > maxGroup {
			continue
		}
		for i, a := range groups[g] {
			for _, b := range groups[g][i+1:] {
				out = append(out, &pb.Link{A: a, B: b, Type: pb.Link_SAME_BOARD, Distance: 10, P2P: true})
			}
		}
	}
	return out
}
