package device

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/plugins/accelerator"
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
		p.m.cfg.Logger.Debug("plugin's answer not stored", "plugin", p.name, "error", err)
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

const (
	// hangTimeout is the default of Manager.hangTimeout: how long a plugin's scan of the hardware
	// may take before the process is killed. A scan takes at most 4 s, the first one 8 s.
	hangTimeout = time.Minute
	maxChecks   = 64
	maxText     = 1024 // bytes of a check's name or message
)

// scanned records the result of a plugin's scan of its hardware, and logs changes.
func (p *plugin) scanned(l *acceleratorpb.Look) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.look
	if p.look = l; was.GetState() == l.GetState() && was.GetMessage() == l.GetMessage() {
		return
	}
	switch {
	case l.GetMessage() != "":
		p.m.cfg.Logger.Warn("plugin does not see all of its hardware", "plugin", p.name, "look", l.GetState(), "error", l.GetMessage())
	case was.GetMessage() != "":
		p.m.cfg.Logger.Info("plugin sees all of its hardware again", "plugin", p.name)
	}
	if was.GetState() == l.GetState() {
		return
	}
	select {
	case p.recheck <- struct{}{}:
	default:
	}
	if p.hanging != nil {
		p.hanging.Stop()
		p.hanging = nil
	}
	if l.GetState() == acceleratorpb.Look_HANGING {
		p.hanging = time.AfterFunc(p.m.hangTimeout, func() {
			p.restart(fmt.Sprintf("its scan of the hardware has not ended for %s", p.m.hangTimeout))
		})
	}
}

// forget removes the results of an ended process.
func (p *plugin) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.look = nil; p.hanging != nil {
		p.hanging.Stop()
		p.hanging = nil
	}
}

// restart kills the process and starts it again, also after the plugin was given up.
func (p *plugin) restart(why string) {
	p.m.cfg.Logger.Warn("plugin is restarted", "plugin", p.name, "reason", why)
	p.mu.Lock()
	gaveUp := p.gaveUp
	p.mu.Unlock()
	if !gaveUp {
		p.host.Restart(why)
		return
	}
	select {
	case p.revive <- struct{}{}:
	default:
	}
}

// Restart restarts the process of a plugin. name is its name in reports. It returns NotFound if the
// node has no such plugin.
func (m *Manager) Restart(name, why string) error {
	for _, p := range m.plugins {
		if name != "" && (p.Key() == name || p.name == name) {
			p.restart(why)
			return nil
		}
	}
	return fmt.Errorf("plugin %.40q is not configured on this node: %w", name, errdefs.ErrNotFound)
}

// examine runs the plugin's preflight checks after its start and whenever its scans begin to fail
// or to succeed.
func (p *plugin) examine(ctx context.Context, c *accelerator.Client) {
	for {
		checks := preflight(ctx, c)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		p.checks = checks
		p.mu.Unlock()
		for _, check := range checks {
			if check.Level != agentpb.PluginCheck_OK {
				p.m.cfg.Logger.Warn("plugin's preflight", "plugin", p.name, "check", check.Name, "level", check.Level, "text", check.Text)
			}
		}
		p.m.cfg.OnChange()
		select {
		case <-ctx.Done():
			return
		case <-p.recheck:
		}
	}
}

// preflight calls the plugin once. It returns nothing for a plugin without checks, and one failed
// check for a plugin that returns an error.
func preflight(ctx context.Context, c *accelerator.Client) []*agentpb.PluginCheck {
	resp, err := c.Preflight(ctx, &acceleratorpb.PreflightRequest{})
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	if err != nil {
		return []*agentpb.PluginCheck{{Name: "preflight", Level: agentpb.PluginCheck_ERROR, Text: cut(status.Convert(err).Message())}}
	}
	var out []*agentpb.PluginCheck
	for _, check := range resp.GetChecks() {
		one := &agentpb.PluginCheck{Name: cut(check.GetName()), Level: agentpb.PluginCheck_ERROR, Text: cut(check.GetDetail())}
		switch {
		case check.GetOk():
			one.Level = agentpb.PluginCheck_OK
		case check.GetOptional():
			one.Level = agentpb.PluginCheck_WARNING
		}
		if out = append(out, one); len(out) == maxChecks {
			break
		}
	}
	return out
}

func cut(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}
