package driver

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// PCI is a PCI function. Ids are four lower-case hexadecimal digits without 0x.
type PCI struct {
	Address            string // 0000:3b:00.0
	Vendor, Device     string
	SubVendor, SubName string // of the subsystem
	Class              string // six digits
	Driver             string // kernel driver, "" without
	Group              string // IOMMU group, "" without
	Root               string // of the bus: pci0000:00
	NUMA               int32  // -1 if unknown
	Dir                string // in sysfs, with links resolved
}

var pciForm = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// PCI returns the functions of the vendors, sorted by address.
func (h *Host) PCI(vendors ...string) []PCI {
	var out []PCI
	for _, address := range Names(h.Sys("bus/pci/devices")) {
		if v := hexID(h.Sys("bus/pci/devices", address, "vendor")); !slices.Contains(vendors, v) {
			continue
		}
		if d, ok := h.PCIAt(address); ok {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, ByAddress)
	return out
}

// ByAddress orders functions like PCI: by the hexadecimal numbers of their addresses.
func ByAddress(a, b PCI) int {
	return cmp.Or(cmp.Compare(len(a.Address), len(b.Address)), cmp.Compare(a.Address, b.Address))
}

// Address converts a PCI address to the kernel's format. Some programs omit the domain, print it
// with eight digits, or use capitals.
func Address(s string) string {
	s = strings.ToLower(s)
	switch strings.Count(s, ":") {
	case 1:
		return "0000:" + s
	case 2:
		if domain, rest, _ := strings.Cut(s, ":"); len(domain) == 8 && strings.HasPrefix(domain, "0000") {
			return domain[4:] + ":" + rest
		}
	}
	return s
}

// PCIAt returns the function at an address.
func (h *Host) PCIAt(address string) (PCI, bool) {
	link := h.Sys("bus/pci/devices", address)
	if !pciForm.MatchString(address) || !Exists(link) {
		return PCI{}, false
	}
	dir, err := filepath.EvalSymlinks(link)
	if err != nil {
		return PCI{}, false
	}
	d := PCI{
		Address: address, Dir: dir, NUMA: -1,
		Vendor: hexID(dir, "vendor"), Device: hexID(dir, "device"), Class: hexID(dir, "class"),
		SubVendor: hexID(dir, "subsystem_vendor"), SubName: hexID(dir, "subsystem_device"),
		Driver: linked(dir, "driver"), Group: linked(dir, "iommu_group"),
	}
	if n, err := strconv.Atoi(Text(dir, "numa_node")); err == nil && n >= 0 && n < 1024 {
		d.NUMA = int32(n)
	}
	for _, elem := range strings.Split(dir, "/") {
		if strings.HasPrefix(elem, "pci") && strings.Contains(elem, ":") {
			d.Root = elem
			break
		}
	}
	return d, true
}

// Place sets the bus location of a device.
func (d PCI) Place(to *pb.Device) {
	to.PciAddress, to.PcieRoot = d.Address, d.Root
	if d.NUMA >= 0 {
		to.NumaNode = &d.NUMA
	}
}

// hexID returns the number in a file, or "" if there is none.
func hexID(elem ...string) string {
	s := strings.ToLower(strings.TrimPrefix(Text(elem...), "0x"))
	if _, err := strconv.ParseUint(s, 16, 32); err != nil {
		return ""
	}
	return s
}

func linked(elem ...string) string {
	to, err := os.Readlink(filepath.Join(elem...))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// natural sorts names so that card10 follows card9.
func natural(names []string) {
	slices.SortFunc(names, func(a, b string) int {
		i := 0
		for i < len(a) && i < len(b) && a[i] == b[i] {
			i++
		}
		for i > 0 && digit(a[i-1]) { // to the beginning of the number
			i--
		}
		x, y := number(a[i:]), number(b[i:])
		if x != "" && y != "" && len(x) != len(y) {
			return cmp.Compare(len(x), len(y))
		}
		return cmp.Compare(a[i:], b[i:])
	})
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// number returns the decimal number at the beginning of a text, without leading zeros.
func number(s string) string {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return strings.TrimLeft(s[:n], "0")
}
