package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is a host with cards.
type machine struct {
	*driver.Host
	config config
}

// sram is the memory of a chip; a card has no other memory.
const sram = 220 << 20

// groqCards are the PCI subsystem ids of GroqCards.
var groqCards = []string{"c005", "c006", "c007"}

var nodeForm = regexp.MustCompile(`^groqA?([0-9]{1,3})(\.pci)?$`)

// card is a PCI function with its device file.
type card struct {
	driver.PCI
	node   string // "" if unknown
	number int    // in the name of node
	doubt  error  // why node is unknown
}

// cards returns the cards on the bus. A card's device file is the one that the kernel lists below
// it. If the driver lists none, files and cards are matched by their order, which is correct only
// if their numbers are equal.
func (m *machine) cards() []card {
	var out []card
	var nodes []string
	named := false
	for _, p := range m.PCI(pciID) {
		c := card{PCI: p}
		c.node = published(p)
		named = named || c.node != ""
		out = append(out, c)
	}
	for _, name := range driver.Names(m.Dev()) {
		if nodeForm.MatchString(name) {
			nodes = append(nodes, name)
		}
	}
	for i := range out {
		c := &out[i]
		switch {
		case named && c.node == "":
			c.doubt = errors.New("the kernel's driver shows no device file for it")
		case !named && len(nodes) != len(out):
			c.doubt = fmt.Errorf("%d device files /dev/groq* for %d cards: cannot match files to devices", len(nodes), len(out))
		case !named:
			c.node = nodes[i]
		}
		if found := nodeForm.FindStringSubmatch(c.node); found != nil {
			c.number, _ = strconv.Atoi(found[1])
		}
	}
	return out
}

// published returns the device file that the kernel lists in a class directory below a function.
func published(p driver.PCI) string {
	for _, class := range driver.Names(p.Dir) {
		for _, name := range driver.Names(p.Dir, class) {
			if nodeForm.MatchString(name) {
				return name
			}
		}
	}
	return ""
}

// Scan implements driver.Machine.
func (m *machine) Scan(ctx context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: slots(), DriverInfo: map[string]string{}}
	all := m.cards()
	if len(all) == 0 {
		return s, nil
	}
	said, err := m.ask(ctx, "status")
	for _, c := range all {
		if c.Driver != "" {
			s.DriverInfo["driver"] = c.Driver
		}
		d := m.device(c)
		m.judge(d, c, said, err)
		s.Devices = append(s.Devices, d)
	}
	return s, nil
}

func (m *machine) device(c card) *pb.Device {
	d := &pb.Device{
		Id: c.Address, Model: "GroqCard", Health: pb.Health_HEALTH_HEALTHY, MemoryBytes: sram, ProcessingUnits: 1,
		Allocatable: true, Capacity: map[string]string{slot: "1"}, Attributes: map[string]string{},
	}
	c.Place(d)
	if c.SubName != "" {
		d.Attributes["subsystem"] = c.SubName
	}
	switch {
	case c.Device != "0000":
		d.Model, d.MemoryBytes, d.ProcessingUnits = "Groq device "+c.Device, 0, 0
		driver.Reject(d, "PCI device %q is not a GroqChip", c.Device)
	case !slices.Contains(groqCards, c.SubName):
		d.Model = "GroqChip"
		if !m.config.OtherCards {
			driver.Reject(d, "PCI subsystem %q is not a GroqCard; the setting other_cards makes it allocatable", c.SubName)
		}
	}
	if c.doubt != nil {
		driver.Reject(d, "%v", c.doubt)
		return d
	}
	d.Attributes["node"] = c.node
	if _, err := m.Node(c.node); err != nil {
		driver.Reject(d, "%v", err)
	}
	return d
}

// Check implements driver.Checker.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	nodes := &pb.Check{Name: "device-nodes", Ok: true, Detail: "every card has one"}
	for _, c := range m.cards() {
		if c.doubt != nil {
			nodes.Ok, nodes.Detail = false, c.Address+": "+c.doubt.Error()
		}
	}
	_, err := m.ask(ctx, "status")
	return []*pb.Check{nodes, driver.Optional(driver.Tried("tsp-ctl", err, "answers", "only the kernel's sensors monitor the cards"))}
}
