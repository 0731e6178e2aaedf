package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is a host with boards.
type machine struct {
	*driver.Host
	config config
	now    func() time.Time

	mu     sync.Mutex
	pulses map[string]pulse // of boards, by id
}

var (
	entryForm = regexp.MustCompile(`^tenstorrent!([0-9]{1,4})$`)
	idForm    = regexp.MustCompile(`^[0-9a-f]{1,32}$`)
)

func (m *machine) class(elem ...string) string {
	return m.Sys(append([]string{"class/tenstorrent"}, elem...)...)
}

// Scan implements driver.Machine.
func (m *machine) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: slots(), DriverInfo: map[string]string{}}
	if v := driver.Text(m.Sys("module/tenstorrent/version")); v != "" {
		s.DriverInfo["driver"] = v
	}
	served := map[string]bool{} // PCI addresses with an entry in the driver's class
	for _, entry := range driver.Names(m.class()) {
		found := entryForm.FindStringSubmatch(entry)
		if found == nil {
			continue
		}
		d := m.device(entry, found[1])
		served[d.GetPciAddress()] = true
		s.Devices = append(s.Devices, d)
	}
	for _, p := range m.PCI(pciID) {
		if served[p.Address] {
			continue
		}
		d := &pb.Device{Id: p.Address, Model: model("", p.Device), Health: pb.Health_HEALTH_UNKNOWN}
		p.Place(d)
		driver.Reject(d, "the kernel driver tt-kmd is not bound to it")
		s.Devices = append(s.Devices, d)
	}
	s.Links = links(s.Devices)
	return s, nil
}

// device reads an entry of the driver's class.
func (m *machine) device(entry, number string) *pb.Device {
	card := driver.Text(m.class(entry, "tt_card_type"))
	d := &pb.Device{Health: pb.Health_HEALTH_HEALTHY, Allocatable: true, Attributes: map[string]string{"number": number}}
	var pci driver.PCI
	if to, err := filepath.EvalSymlinks(m.class(entry, "device")); err == nil {
		if p, ok := m.PCIAt(filepath.Base(to)); ok {
			pci = p
			p.Place(d)
		}
	}
	m.identify(d, entry, pci.Address)
	for _, name := range []string{"fw_bundle_ver", "arc_fw_ver", "eth_fw_ver", "m3app_fw_ver"} {
		if v := driver.Text(m.class(entry, "tt_"+name)); v != "" {
			d.Attributes[strings.TrimSuffix(name, "_ver")] = v
		}
	}
	d.Model = model(card, pci.Device)
	m.offer(d, card, generations[pci.Device])
	if _, err := m.Node("tenstorrent/" + number); err != nil {
		driver.Reject(d, "%v", err)
	}
	m.judge(d, entry)
	return d
}

// identify sets the id of a device: the chip's number, or else the board's number or the PCI
// address. The board's number is not used if several chips have the same.
func (m *machine) identify(d *pb.Device, entry, address string) {
	d.Id = address
	if address == "" {
		d.Id = "board-" + strings.TrimPrefix(entry, "tenstorrent!")
		driver.Reject(d, "its address on the PCI bus is unknown")
	}
	number := func(name string) string {
		path := m.class(entry, name)
		if !driver.Exists(path) {
			return ""
		}
		v := strings.ToLower(strings.TrimPrefix(driver.Text(path), "0x"))
		if !idForm.MatchString(v) {
			driver.Reject(d, "%s is %q, not a hexadecimal number", name, driver.Text(path))
			return ""
		}
		if strings.Trim(v, "0") == "" {
			return "" // not programmed
		}
		return v
	}
	d.Serial = number("tt_serial")
	if d.Serial != "" {
		d.Id, d.Groups = d.Serial, []string{"board-" + d.Serial}
	}
	if asic := number("tt_asic_id"); asic != "" {
		d.Id = asic
	}
}

// offer sets the slot of a device.
func (m *machine) offer(d *pb.Device, card, generation string) {
	b, ok := product(card)
	switch {
	case card == "":
		driver.Reject(d, "tt_card_type does not name the board")
	case ok && generation != "" && generation != "Wormhole":
		driver.Reject(d, "the driver reports a %s, but the chip is a %s", card, generation)
	case ok:
		d.MemoryBytes, d.ProcessingUnits = b.memory, b.cores
		d.Attributes["chip_count"] = fmt.Sprint(b.chips)
		d.Capacity = map[string]string{b.slot: "1"}
	case m.config.OtherBoards:
		d.Capacity = map[string]string{otherSlot: "1"}
	default:
		driver.Reject(d, "%s is not Wormhole (n150, n300, Galaxy); the setting other_boards makes it allocatable", d.Model)
	}
}

func model(card, device string) string {
	if b, ok := product(card); ok {
		return b.model
	}
	name := generations[device]
	if name == "" {
		name = "Tenstorrent"
	}
	return strings.TrimSpace(name + " " + card)
}

// links returns links between the chips of one board.
func links(devices []*pb.Device) []*pb.Link {
	var out []*pb.Link
	for i, a := range devices {
		for _, b := range devices[i+1:] {
			if a.GetSerial() != "" && a.GetSerial() == b.GetSerial() {
				out = append(out, &pb.Link{A: a.GetId(), B: b.GetId(), Type: pb.Link_SAME_BOARD, Distance: 1})
			}
		}
	}
	return out
}
