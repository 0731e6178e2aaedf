package session

import (
	"context"
	"fmt"
	"net/netip"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessionnetwork"
	"github.com/berthhq/berth/manager/overlay"
)

// Network is what joins the kernels of a session over several agents.
type Network struct {
	overlay.Part
	MTU int
}

// connect stores the networks of sessions that are being placed.
func connect(ctx context.Context, tx *ent.Tx, places []Place) error {
	var rows []*ent.SessionNetworkCreate
	for _, p := range places {
		if p.Network != nil {
			rows = append(rows, tx.SessionNetwork.Create().SetSessionID(p.Session.ID).
				SetVni(p.Network.VNI).SetSubnet(p.Network.Subnet.String()).SetMtu(p.Network.MTU))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := tx.SessionNetwork.CreateBulk(rows...).Exec(ctx); err != nil {
		return fmt.Errorf("store networks of sessions: %w", err)
	}
	return nil
}

// present are the networks that are not given back.
func present(q *ent.SessionNetworkQuery) {
	q.Where(func(s *sql.Selector) { s.Where(sql.IsNull(s.C(sessionnetwork.FieldFreedAt))) })
}

// network is what an agent is told of the other kernels of the session, nil where
// all are on one agent.
func (s step) network(k *ent.Kernel) (*agentpb.KernelNetwork, error) {
	if len(s.sess.Edges.Networks) == 0 {
		return nil, nil
	}
	n := s.sess.Edges.Networks[0]
	subnet, err := netip.ParsePrefix(n.Subnet)
	if err != nil {
		return nil, fmt.Errorf("subnet of network %d: %w", n.Vni, err)
	}
	out := &agentpb.KernelNetwork{
		Vni: uint32(n.Vni), Subnet: n.Subnet, Mtu: uint32(n.Mtu), Address: overlay.Address(subnet, k.Index).String(),
	}
	for _, o := range s.sess.Edges.Kernels {
		if o.ID == k.ID {
			continue
		}
		p := &agentpb.KernelPeer{Hostname: o.Hostname, Address: overlay.Address(subnet, o.Index).String()}
		if *o.AgentID != *k.AgentID {
			p.Endpoint = o.Edges.Agent.Overlay.Endpoint
		}
		out.Peers = append(out.Peers, p)
	}
	return out, nil
}
