package declarative

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// found is a PCI function and its product.
type found struct {
	driver.PCI
	*Product
	index int
}

func (m *machine) found() []found {
	var out []found
	for _, at := range m.PCI(m.describe().PciVendors...) {
		for i := range m.Products {
			if p := &m.Products[i]; slices.ContainsFunc(p.PCI, func(id string) bool { return covers(id, at) }) {
				out = append(out, found{at, p, m.index(at.Address)})
				break
			}
		}
	}
	return out
}

// index returns the index of a device, which does not change for this configuration, even if other
// devices disappear.
func (m *machine) index(pci string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.seen, pci)
	if i < 0 {
		i = len(m.seen)
		m.seen = append(m.seen, pci)
	}
	return i
}

// covers reports whether an id with wildcards matches a function.
func covers(id string, at driver.PCI) bool {
	id, class, _ := strings.Cut(id, "/")
	vendor, device, _ := strings.Cut(id, ":")
	return vendor == at.Vendor && (device == "*" || device == at.Device) && strings.HasPrefix(at.Class, class)
}

// Scan implements driver.Machine. It adds the values of the program to those of the bus. If the
// program fails, devices whose status it would report are not allocatable.
func (m *machine) Scan(ctx context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: m.slots(), DriverInfo: map[string]string{}}
	all := m.found()
	if len(all) == 0 {
		return s, nil
	}
	said, silence := m.ask(ctx)
	for _, f := range all {
		d := &pb.Device{
			Id: f.Address, Model: f.Name, Health: pb.Health_HEALTH_HEALTHY, MemoryBytes: f.Memory, ProcessingUnits: f.Units,
			Allocatable: true, Capacity: map[string]string{f.Slot: "1"},
			Attributes: map[string]string{"index": strconv.Itoa(f.index), "pci_id": f.PCI.Vendor + ":" + f.Device},
		}
		if f.Slot == "" {
			d.Capacity = nil
		}
		f.Place(d)
		if f.Driver != "" {
			s.DriverInfo["driver"] = f.Driver
		}
		m.complete(d, f, said, silence)
		if f.Reject != "" || f.Slot == "" {
			driver.Reject(d, "%s", cmp.Or(f.Reject, "the description does not make this product allocatable"))
		}
		if _, err := m.files(m.Nodes, f.index, 0, f.Address); err != nil {
			driver.Reject(d, "%v", err)
		}
		s.Devices = append(s.Devices, d)
	}
	return s, nil
}

// complete adds the program's values to a device.
func (m *machine) complete(d *pb.Device, f found, said report, silence error) {
	if m.Program == nil || errors.Is(silence, driver.ErrNoProgram) {
		return
	}
	doubt := func(format string, args ...any) {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNKNOWN, driver.Clean(fmt.Sprintf(format, args...), 200)
		driver.Reject(d, "%s", d.HealthMessage)
	}
	if silence != nil {
		doubt("%v", silence)
		return
	}
	says, ok := said[m.subject(f)]
	if !ok {
		doubt("%s does not list it", m.Program.Run[0])
		return
	}
	for name, to := range map[string]*string{"model": &d.Model, "serial": &d.Serial, "uuid": &d.Id} {
		if v := says.text(m.Program, name); v != "" {
			*to = v
		}
	}
	if v := says.text(m.Program, "firmware"); v != "" {
		d.Attributes["firmware"] = v
	}
	if n, err := says.number(m.Program, "memory_total"); err == nil && n > 0 {
		d.MemoryBytes = uint64(n)
	}
	status, known := m.Program.Fields["status"]
	if v := says.text(m.Program, "status"); known && !slices.Contains(status.Healthy, v) {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, driver.Clean(fmt.Sprintf("%s reports %q", m.Program.Run[0], v), 200)
		driver.Reject(d, "%s", d.HealthMessage)
	}
	hot, err := says.number(m.Program, "temperature")
	most, unlimited := says.number(m.Program, "temperature_max")
	if err == nil && unlimited == nil && most > 0 && hot >= most {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, fmt.Sprintf("%.0f °C, of at most %.0f", hot, most)
		driver.Reject(d, "%s", d.HealthMessage)
	}
}

// subject returns the program's name of a device.
func (m *machine) subject(f found) string {
	if m.Program.By == "index" {
		return strconv.Itoa(f.index)
	}
	return f.Address
}

// Check implements driver.Checker.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	var out []*pb.Check
	if m.Experimental != "" {
		out = append(out, driver.Optional(driver.Checked("experimental", false, "", "experimental: "+m.Experimental)))
	}
	if m.Program == nil {
		return out
	}
	_, err := m.ask(ctx)
	return append(out, driver.Tried("program "+m.Program.Run[0], err, "answers", ""))
}
