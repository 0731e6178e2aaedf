package device

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/plugins/accelerator"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

const (
	// hangTimeout is the default of Manager.hangTimeout: how long a plugin's scan of the hardware
	// may take before the process is killed. A scan takes at most 4 s, the first one 8 s.
	hangTimeout = time.Minute
	maxChecks   = 64
	maxText     = 1024 // bytes of a check's name or message
)

// looked records the result of a plugin's scan of its hardware, and logs changes.
func (p *plugin) looked(l *acceleratorpb.Look) {
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
			p.restart(fmt.Sprintf("its look at the hardware has not ended for %s", p.m.hangTimeout))
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
