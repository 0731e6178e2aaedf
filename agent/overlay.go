package agent

import (
	"path/filepath"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/network"
)

func (a *Agent) openNetwork() (*network.Manager, error) {
	cfg := network.Config{Agent: a.id, Dir: filepath.Join(a.cfg.Dir, "netns"), Subnet: a.cfg.Subnet, Logger: a.log,
		Allow: a.cfg.AllowNetworks, Deny: a.cfg.DenyNetworks, Resolvers: mount.Resolvers}
	if a.cfg.Overlay == OverlayOff {
		cfg.Off = "it is switched off there"
	} else {
		known := network.Known(a.cfg.Managers...)
		endpoint, err := network.ParseEndpoint(a.cfg.Overlay, known)
		if err != nil {
			return nil, err
		}
		if !endpoint.Addr().IsValid() {
			cfg.Off = "the machine has no IPv4 address that others can reach"
		} else {
			cfg.Endpoint = endpoint
		}
	}
	return network.New(cfg)
}

// overlay returns the overlay endpoint for the report, and a probe with the same result for people.
func (a *Agent) overlay() (*agentpb.Overlay, *agentpb.Probe) {
	n, ok := a.network.(interface{ Reach() network.Reach })
	if !ok {
		return nil, nil
	}
	r := n.Reach()
	if r.Off != "" {
		return &agentpb.Overlay{Off: r.Off}, &agentpb.Probe{Name: "overlay", Detail: r.Off}
	}
	to := r.Endpoint.String()
	return &agentpb.Overlay{Endpoint: to, Mtu: uint32(r.MTU)}, &agentpb.Probe{Name: "overlay", Ok: true, Detail: "other agents send to " + to}
}
