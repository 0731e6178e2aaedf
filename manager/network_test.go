package manager_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/network"
	"github.com/berthhq/berth/ent"
	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/sessionnetwork"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/managertest"
)

// spreads creates a session of two kernels, of which an agent has room for one.
func (c *cluster) spreads(t *testing.T) uuid.UUID {
	t.Helper()
	var cpus int64
	for _, d := range c.Client.Device.Query().AllX(c.System(t)) {
		cpus = max(cpus, d.Capacity["cpu"])
	}
	most := managertest.Vars{"cpu": fmt.Sprintf("%.3f", 0.6*float64(cpus)/1000), "mem": "16m"}
	return c.create(t, input(managertest.Vars{"kernels": 2, "slots": most}, "sleep", "600"))
}

// network returns the present network of a session.
func (c *cluster) network(t *testing.T, id uuid.UUID) *ent.SessionNetwork {
	t.Helper()
	n, err := c.Client.SessionNetwork.Query().Where(sessionnetwork.SessionID(id), sessionnetwork.FreedAtIsNil()).Only(c.System(t))
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The kernels of a session on two agents learn each other's addresses, and the next attempt and the
// next session get a new network.
func TestNetworkOverAgents(t *testing.T) {
	c := newCluster(t, 2)
	c.nodes[1].wires.reach.MTU = 8950 // what one agent can carry is too much for the other
	ctx := c.System(t)
	alone := c.create(t, input(managertest.Vars{"kernels": 2}, "sleep", "600"))
	c.reaches(t, alone, lifecycle.Running)
	if n := c.network(t, alone); n != nil {
		t.Errorf("a session on one agent has %v", n)
	}
	c.end(t, alone, true)
	c.over(t, alone)
	seen := map[int]bool{}
	for range 2 {
		id := c.spreads(t)
		c.reaches(t, id, lifecycle.Running)
		n := c.network(t, id)
		if n == nil || n.Mtu != 1450 || n.Vni < agentpb.MinVNI || seen[n.Vni] {
			t.Fatalf("the session has %v", n)
		}
		seen[n.Vni] = true
		subnet := netip.MustParsePrefix(n.Subnet)
		for _, k := range c.Client.Kernel.Query().Where(kernel.SessionID(id)).WithAgent().AllX(ctx) {
			here, there := c.nodes[0], c.nodes[1]
			if k.Edges.Agent.Name != here.name {
				here, there = there, here
			}
			a := here.wires.joined(k.ID)
			address := func(index int) netip.Addr {
				at := subnet.Addr().Next().Next()
				for range index {
					at = at.Next()
				}
				return at
			}
			if a.Session != id.String() || a.Subnet != subnet || a.Address != address(k.Index) || a.Overlay == nil ||
				a.Overlay.VNI != uint32(n.Vni) || a.Overlay.MTU != 1450 || len(a.Overlay.Peers) != 1 ||
				a.Overlay.Peers[0] != (network.Peer{Address: address(1 - k.Index), Endpoint: there.wires.reach.Endpoint}) {
				t.Errorf("kernel %d joins %+v %+v of %s, %d", k.Index, a, a.Overlay, subnet, n.Vni)
			}
		}
		c.end(t, id, true)
		c.over(t, id)
		if n := c.network(t, id); n != nil {
			t.Errorf("after its end the session has %v", n)
		}
	}
	c.check(t, true)
}

// While no network is left, and on agents without a common network, sessions that need one wait
// with this reason.
func TestNoNetworkIsLeft(t *testing.T) {
	c := newCluster(t, 2)
	ctx := c.System(t)
	holds := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, holds, lifecycle.Running)
	c.Client.SessionNetwork.Create().SetSessionID(holds).SetVni(agentpb.MaxVNI).SetSubnet("10.214.0.0/16").SetMtu(1450).ExecX(ctx)
	id := c.spreads(t)
	c.waits(t, id, "no network for so many containers is left")
	c.end(t, holds, true)
	c.over(t, holds)
	c.reaches(t, id, lifecycle.Running)
	if n := c.network(t, id); n.Vni != agentpb.MinVNI {
		t.Errorf("after the highest number comes %d", n.Vni)
	}
	c.end(t, id, true)
	c.over(t, id)

	c.nodes[1].stop()
	c.nodes[1].wires.reach = network.Reach{Off: "it is switched off there"}
	c.join(t, c.nodes[1], c.m)
	managertest.Eventually(t, "the agent has told", func() bool {
		return c.Client.Agent.Query().Where(entagent.Name(c.nodes[1].name)).OnlyX(ctx).Overlay.Off != ""
	})
	id = c.spreads(t)
	c.waits(t, id, c.nodes[1].name+": it is switched off there")
	whole := c.create(t, input(managertest.Vars{"kernels": 2}, "sleep", "600"))
	c.reaches(t, whole, lifecycle.Running)
	c.end(t, whole, true)
	c.end(t, id, true)
	c.over(t, whole)
	c.over(t, id)
	c.check(t, true)
}

// A session gets the private networks that its group opens when it starts: an
// empty list closes them for sessions that start after it.
func TestNetworksOfGroups(t *testing.T) {
	c := newCluster(t, 1)
	for _, tt := range []struct{ set, want []string }{
		{nil, []string{}},
		{[]string{"10.1.0.0/16", "10.1.2.3/32:443", "10.1.0.0/16"}, []string{"10.1.0.0/16", "10.1.2.3:443"}},
		{[]string{}, []string{}},
	} {
		if tt.set != nil {
			c.set(t, managertest.Vars{"allowedNetworks": tt.set})
		}
		id := c.create(t, input(nil, "sleep", "600"))
		c.reaches(t, id, lifecycle.Running)
		if got := c.nodes[0].wires.allowed(id); !slices.Equal(got, tt.want) {
			t.Errorf("after %q a session reaches %q, want %q", tt.set, got, tt.want)
		}
		c.end(t, id, true)
		c.over(t, id)
	}
}
