// Package peers describes the kernels of a session to each other: host names, addresses, and the variables
// that programs over several kernels look for.
package peers

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/collective"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/overlay"
)

// Cluster describes all kernels of a session to each of them. It returns nil for a session with one
// kernel.
func Cluster(sess *ent.Session, secret []byte) *agentpb.KernelCluster {
	if len(sess.Edges.Kernels) < 2 {
		return nil
	}
	c := &agentpb.KernelCluster{Secret: secret, Members: make([]*agentpb.KernelMember, len(sess.Edges.Kernels))}
	for _, k := range sess.Edges.Kernels {
		c.Members[k.Index] = &agentpb.KernelMember{Hostname: k.Hostname, Slots: uint32(Collective(sess, k).Slots())}
	}
	return c
}

// Environment returns the variables of a kernel: the automatic ones, replaced by those that were
// requested.
func Environment(sess *ent.Session, k *ent.Kernel, wanted map[string]string) map[string]string {
	env := automaticVariables(sess, k)
	maps.Copy(env, wanted)
	return env
}

// automaticVariables returns the variables that programs in several kernels, over several accelerators or in
// an array look for.
func automaticVariables(sess *ent.Session, k *ent.Kernel) map[string]string {
	env := collective.Variables(Collective(sess, k))
	if a := sess.Edges.Array; a != nil && sess.ArrayIndex != nil {
		env["BERTH_ARRAY_ID"], env["BERTH_ARRAY_SIZE"] = a.ID.String(), fmt.Sprint(a.Size)
		env["BERTH_ARRAY_INDEX"] = fmt.Sprint(*sess.ArrayIndex)
	}
	return env
}

// Variables returns the variables that a kernel has in addition to the requested ones. The session
// must be loaded with its kernels and array, and the kernel with its allocations and their devices.
func Variables(sess *ent.Session, k *ent.Kernel) map[string]string {
	env := automaticVariables(sess, k)
	for name := range sess.Environment { // values can be encrypted, names are not
		delete(env, name)
	}
	return env
}

// Collective describes a kernel for package collective. It needs the same edges as Variables.
func Collective(sess *ent.Session, k *ent.Kernel) collective.Kernel {
	c := collective.Kernel{Hosts: make([]string, len(sess.Edges.Kernels)), Index: k.Index}
	for _, o := range sess.Edges.Kernels {
		c.Hosts[o.Index] = o.Hostname
	}
	seen := map[string]bool{}
	for _, a := range k.Edges.Allocations {
		if a.FreedAt != nil || a.Edges.Device == nil {
			continue
		}
		d := a.Edges.Device
		if a.Slot == resource.CPU {
			c.MilliCPU += a.Amount
		}
		if d.Plugin != "" && !seen[d.DeviceID] { // without CPU and memory
			seen[d.DeviceID] = true
			c.Devices = append(c.Devices, collective.Device{
				ID: strings.TrimPrefix(d.DeviceID, d.Plugin+":"), Plugin: d.Plugin, PCIERoot: d.PcieRoot, NUMANode: d.NumaNode, Attributes: d.Attributes,
			})
		}
	}
	return c
}

// Network returns the addresses of the other kernels of the session for an agent. It is nil if
// all kernels are on one agent.
func Network(sess *ent.Session, k *ent.Kernel) (*agentpb.KernelNetwork, error) {
	if len(sess.Edges.Networks) == 0 {
		return nil, nil
	}
	n := sess.Edges.Networks[0]
	subnet, err := netip.ParsePrefix(n.Subnet)
	if err != nil {
		return nil, fmt.Errorf("subnet of network %d: %w", n.Vni, err)
	}
	out := &agentpb.KernelNetwork{
		Vni: uint32(n.Vni), Subnet: n.Subnet, Mtu: uint32(n.Mtu), Address: overlay.Address(subnet, k.Index).String(),
	}
	for _, o := range sess.Edges.Kernels {
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
