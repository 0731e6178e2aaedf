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
	// hangTimeout is that of a Manager: how long a plugin's look at the hardware may
	// hang before the process is ended. A look takes 4 s at most, the first one 8 s.
	hangTimeout = time.Minute
	maxChecks   = 64
	maxText     = 1024 // bytes of a check's name or text
)

// looked takes note of how a plugin's look at its hardware went, and logs a change.
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

// forget drops what an ended process said of its view of the hardware.
func (p *plugin) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.look = nil; p.hanging != nil {
		p.hanging.Stop()
		p.hanging = nil
	}
}

// restart ends the process and starts it again, also after the plugin was given up.
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

// Restart ends the process of a plugin, named as in reports, and starts it again. It
// returns NotFound when no plugin of the node has the name.
func (m *Manager) Restart(name, why string) error {
	for _, p := range m.plugins {
		if name != "" && (p.Key() == name || p.name == name) {
			p.restart(why)
			return nil
		}
	}
	return fmt.Errorf("plugin %.40q is not configured on this node: %w", name, errdefs.ErrNotFound)
}

// examine runs the plugin's preflight after its start and whenever its view of the
// hardware changes between good and bad.
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

// preflight asks the plugin once. A plugin without checks has none; one that cannot
// answer has one, which says so.
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
