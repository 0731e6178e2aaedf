package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is a host with cards.
type machine struct {
	*driver.Host
	config config
}

// memory is the memory of the cards that contain an LPU, by the name of their shell, because the
// drivers report only that name.
var memory = map[string]uint64{"u55c": 16 << 30, "u280": 8 << 30, "u50": 8 << 30}

var (
	renderForm = regexp.MustCompile(`^renderD[0-9]{1,4}$`)
	serialForm = regexp.MustCompile(`^[0-9A-Za-z]{6,32}$`)
)

// cards returns the management functions. Other Xilinx cards look the same, so it returns none if
// HyperAccel's runtime is not installed.
func (m *machine) cards() []driver.PCI {
	if !driver.Exists(m.Root(m.config.Runtime)) {
		return nil
	}
	var out []driver.PCI
	for _, p := range m.PCI(pciID) {
		if p.Driver == "xclmgmt" && (len(m.config.DeviceIDs) == 0 || slices.Contains(m.config.DeviceIDs, p.Device)) {
			out = append(out, p)
		}
	}
	return out
}

// Scan implements driver.Machine.
func (m *machine) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: slots(), DriverInfo: map[string]string{}}
	for name, module := range map[string]string{"xclmgmt": "xclmgmt", "driver": "xocl"} {
		if v := driver.Text(m.Sys("module", module, "version")); v != "" {
			s.DriverInfo[name] = v
		}
	}
	for _, p := range m.cards() {
		s.Devices = append(s.Devices, m.device(p))
	}
	return s, nil
}

func (m *machine) device(p driver.PCI) *pb.Device {
	d := &pb.Device{
		Id: p.Address, Model: "LPU", Health: pb.Health_HEALTH_HEALTHY, ProcessingUnits: 1,
		Allocatable: true, Capacity: map[string]string{slot: "1"}, Attributes: map[string]string{},
	}
	p.Place(d)
	if p.Device != "" {
		d.Attributes["pci_device"] = p.Device
	}
	m.board(d, p)
	if err := m.nodes(d, p); err != nil {
		driver.Reject(d, "%v", err)
	}
	if off := driver.Text(p.Dir, "dev_offline"); off == "1" {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, "its driver has taken it offline"
		driver.Reject(d, "%s", d.HealthMessage)
	}
	if hot, limit, err := driver.Sensor(p.Dir, "temp"); err == nil && limit > 0 && hot >= limit {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, fmt.Sprintf("%.0f °C, of at most %.0f", hot, limit)
		driver.Reject(d, "%s", d.HealthMessage)
	}
	return d
}

// board reads the shell of the FPGA and the serial number from the card's controllers. An invalid
// serial number is not used as the id.
func (m *machine) board(d *pb.Device, p driver.PCI) {
	for _, part := range driver.Names(p.Dir) {
		switch {
		case strings.HasPrefix(part, "rom."):
			shell := driver.Text(p.Dir, part, "VBNV")
			if shell == "" {
				continue
			}
			d.Attributes["shell"] = shell
			for board, size := range memory {
				if strings.Contains(shell, "_"+board+"_") {
					d.Attributes["board"], d.MemoryBytes = strings.ToUpper(board), size
				}
			}
		case strings.HasPrefix(part, "xmc."):
			if serial := driver.Text(p.Dir, part, "serial_num"); serialForm.MatchString(serial) {
				d.Id, d.Serial = serial, serial
			}
		}
	}
}

// nodes finds the two device files: that of the management function, whose number is derived from
// its address, and the render node of the user function beside it.
func (m *machine) nodes(d *pb.Device, p driver.PCI) error {
	number, err := place(p.Address)
	if err != nil {
		return err
	}
	d.Attributes["node"] = fmt.Sprintf("xfpga/xvc_pri.m%d.0", number)
	if _, err := m.Node(d.Attributes["node"]); err != nil {
		return err
	}
	beside := strings.TrimSuffix(p.Address, ".0") + ".1"
	user, ok := m.PCIAt(beside)
	if !ok || user.Vendor != pciID {
		return fmt.Errorf("the user function %s is missing", beside)
	}
	d.Attributes["user_function"] = beside
	for _, name := range driver.Names(user.Dir, "drm") {
		if renderForm.MatchString(name) {
			d.Attributes["render_node"] = "dri/" + name
			_, err := m.Node(d.Attributes["render_node"])
			return err
		}
	}
	return fmt.Errorf("the driver xocl does not serve the user function %s", beside)
}

// place returns the number that the drivers derive from an address 0000:3b:00.0: domain, bus, slot
// and function.
func place(address string) (uint64, error) {
	domain, rest, _ := strings.Cut(address, ":")
	bus, rest, _ := strings.Cut(rest, ":")
	device, function, _ := strings.Cut(rest, ".")
	var number uint64
	for _, part := range []struct {
		text string
		bits int
	}{{domain, 16}, {bus, 8}, {device, 5}, {function, 3}} {
		n, err := strconv.ParseUint(part.text, 16, part.bits)
		if err != nil {
			return 0, fmt.Errorf("%s is not the address of a card", address)
		}
		number = number<<part.bits | n
	}
	return number, nil
}

// Check implements driver.Checker.
func (m *machine) Check(context.Context) []*pb.Check {
	return []*pb.Check{
		driver.Checked("runtime", driver.Exists(m.Root(m.config.Runtime)), m.config.Runtime+" is there", m.config.Runtime+" is missing, so no card is recognized as an LPU"),
		driver.Checked("driver", driver.Exists(m.Sys("bus/pci/drivers/xclmgmt")), "xclmgmt is loaded", "xclmgmt is not loaded"),
	}
}
