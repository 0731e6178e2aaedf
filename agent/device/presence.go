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

// Only the plugin itself knows the vendors that it supports. Its answer is cached for as long as
// the program is unchanged, so that a machine with the cards of one vendor does not start every
// plugin whenever the agent starts.

// answer is the cached answer of a plugin, with the identity of its program. A description beside
// the program, with the same name and the suffix .yaml, is part of the identity.
type answer struct {
	Size, Modified, Changed int64
	Described               int64 // modification time of the description, 0 without one
	Inode                   uint64
	Vendor                  string
	PCIVendors              []string
}

// knownAbsence returns why the plugin need not be started, according to the cache.
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

// keep caches the plugin's description. An error is ignored: the plugin is started again then.
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

// identify returns the identity of a program file, which changes when the file is replaced. It
// reports false for a script, because its answer can depend on other files that it loads.
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

// absence returns why the machine has no use for a plugin, and records it; "" if it has. A plugin
// that lists no vendors must be enabled in the configuration.
func (p *plugin) absence(vendor string, pci []string) string {
	if p.cfg.Force || onBus(or(p.cfg.Roots.GetSys(), "/sys"), pci) {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.absent = true
	return fmt.Sprintf("no hardware of %s on the PCI bus", vendor)
}

// onBus reports whether a device of one of the vendors, and of the class if one is given, is on the
// PCI bus.
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

// hexadecimal reads a number from a file of sysfs and returns its digits, or "".
func hexadecimal(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(text)), "0x")
}
