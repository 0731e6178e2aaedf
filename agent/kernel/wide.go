package kernel

import (
	"fmt"
	"net/netip"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/network"
	"github.com/berthhq/berth/internal/netlist"
)

// attach reserves a kernel's place in the network of its session: a network on this agent, or the
// overlay network of the request.
func (m *Manager) attach(r *agentpb.CreateKernelRequest) (network.Attachment, error) {
	allow, err := netlist.Parse(r.AllowedNetworks)
	if err != nil {
		return network.Attachment{}, fmt.Errorf("allowed_networks: %w", err)
	}
	a, err := wide(r)
	if err != nil {
		return a, err
	}
	if r.Network == nil {
		a, err = m.cfg.Network.Reserve(containerID(r), r.SessionId)
		a.Allow = allow
		return a, err
	}
	a.Allow = allow
	return m.cfg.Network.Join(a)
}

// wide parses the overlay network of a create request. It returns the zero value if there is none.
// Package network validates the addresses.
func wide(r *agentpb.CreateKernelRequest) (a network.Attachment, err error) {
	n := r.Network
	if n == nil {
		return a, nil
	}
	bad := func(field, value string, err error) (network.Attachment, error) {
		return a, fmt.Errorf("network.%s %.80q: %w: %w", field, value, err, errdefs.ErrInvalidArgument)
	}
	a = network.Attachment{Key: containerID(r), Session: r.SessionId, Overlay: &network.Overlay{VNI: n.Vni, MTU: int(n.Mtu)}}
	if a.Subnet, err = netip.ParsePrefix(n.Subnet); err != nil {
		return bad("subnet", n.Subnet, err)
	}
	if a.Address, err = netip.ParseAddr(n.Address); err != nil {
		return bad("address", n.Address, err)
	}
	for i, p := range n.Peers {
		field := fmt.Sprintf("peers[%d].", i)
		address, err := netip.ParseAddr(p.Address)
		if err != nil {
			return bad(field+"address", p.Address, err)
		}
		if !hostnameForm.MatchString(p.Hostname) {
			return a, fmt.Errorf("network.%shostname %.80q is malformed: %w", field, p.Hostname, errdefs.ErrInvalidArgument)
		}
		if p.Endpoint == "" {
			continue // on this agent
		}
		endpoint, err := netip.ParseAddrPort(p.Endpoint)
		if err != nil {
			return bad(field+"endpoint", p.Endpoint, err)
		}
		a.Overlay.Peers = append(a.Overlay.Peers, network.Peer{Address: address, Endpoint: endpoint})
	}
	return a, nil
}

// peers returns the other kernels of a session that spans several agents.
func peers(r *agentpb.CreateKernelRequest) (list []mount.Peer) {
	for _, p := range r.GetNetwork().GetPeers() {
		if address, err := netip.ParseAddr(p.Address); err == nil {
			list = append(list, mount.Peer{Hostname: p.Hostname, Address: address})
		}
	}
	return list
}
