package device

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Which vendors a plugin is for, only it can tell. So that a machine with one
// vendor's cards does not start every plugin each time the agent starts, the
// answer is kept, for as long as the program is the same file.

// answer is what a plugin said, and by which file. A description beside it, of the
// same name and .yaml, is part of it.
type answer struct {
	Size, Modified, Changed int64
	Described               int64 // when the description was written, 0 without one
	Inode                   uint64
	Vendor                  string
	PCIVendors              []string
}

// knownAbsence tells why the plugin need not even be started.
func (p *plugin) knownAbsence() string {
	if p.cfg.Force {
		return ""
	}
	now, ok := identify(p.cfg.Path)
	if !ok {
		return ""
	}
	text, err := os.ReadFile(p.answers())
	if err != nil {
		return ""
	}
	var a answer
	if json.Unmarshal(text, &a) != nil {
		return ""
	}
	now.Vendor, now.PCIVendors = a.Vendor, a.PCIVendors
	if same, err := json.Marshal(now); err != nil || !bytes.Equal(same, text) {
		return ""
	}
	return p.absence(a.Vendor, a.PCIVendors)
}

// keep notes what the plugin says of itself. It may fail: then it is asked again.
func (p *plugin) keep(d *acceleratorpb.DescribeResponse) {
	a, ok := identify(p.cfg.Path)
	if !ok {
		return
	}
	a.Vendor, a.PCIVendors = d.Vendor, d.PciVendors
	text, err := json.Marshal(a)
	if err != nil {
		return
	}
	if err := os.WriteFile(p.answers(), text, 0o600); err != nil {
		p.m.cfg.Logger.Debug("plugin's answer not kept", "plugin", p.name, "error", err)
	}
}

func (p *plugin) answers() string { return filepath.Join(p.m.cfg.Dir, "answer-"+p.name+".json") }

// identify tells one file from another, also one that was put in its place. A
// script is never the same: what it says may come from files that it loads.
func identify(program string) (answer, bool) {
	f, err := os.Open(program)
	if err != nil {
		return answer{}, false
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != "\x7fELF" {
		return answer{}, false
	}
	info, err := f.Stat()
	if err != nil {
		return answer{}, false
	}
	st := info.Sys().(*syscall.Stat_t)
	a := answer{Size: st.Size, Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(), Inode: st.Ino}
	if d, err := os.Stat(program + ".yaml"); err == nil {
		a.Described = d.ModTime().UnixNano()
	}
	return a, true
}

// absence tells why a vendor's plugin has nothing to do here, and notes it; ""
// = it has. Who lists no vendor is wanted only by configuration.
func (p *plugin) absence(vendor string, pci []string) string {
	if p.cfg.Force || onBus(or(p.cfg.Roots.GetSys(), "/sys"), pci) {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.absent = true
	return fmt.Sprintf("no hardware of %s on the PCI bus", vendor)
}

// onBus reports whether hardware of a vendor, and of the class where one is named, is on
// the bus.
func onBus(sys string, vendors []string) bool {
	files, _ := filepath.Glob(filepath.Join(sys, "bus/pci/devices/*/vendor"))
	for _, f := range files {
		vendor, class := hexadecimal(f), hexadecimal(filepath.Join(filepath.Dir(f), "class"))
		if slices.ContainsFunc(vendors, func(v string) bool {
			id, of, _ := strings.Cut(v, "/")
			return id == vendor && strings.HasPrefix(class, of)
		}) {
			return true
		}
	}
	return false
}

// hexadecimal reads the digits of a number of sysfs, "" when there is none.
func hexadecimal(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(text)), "0x")
}
