package integration

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
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// spreads creates a session of two kernels, of which an agent has room for one.
func spreads(t *testing.T, c *clustertest.Cluster) uuid.UUID {
	t.Helper()
	var cpus int64
	for _, d := range c.Client.Device.Query().AllX(c.System(t)) {
		cpus = max(cpus, d.Capacity["cpu"])
	}
	most := managertest.Vars{"cpu": fmt.Sprintf("%.3f", 0.6*float64(cpus)/1000), "mem": "16m"}
	return c.Create(t, clustertest.SessionInput(managertest.Vars{"kernels": 2, "slots": most}, "sleep", "600"))
}

// network returns the present network of a session.
func sessionNetwork(t *testing.T, c *clustertest.Cluster, id uuid.UUID) *ent.SessionNetwork {
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

// The kernels of a session on two agents get each other's addresses. The next attempt and the next
// session get a new network.
func TestNetworkOverAgents(t *testing.T) {
	c := clustertest.New(t, 2)
	c.Nodes[1].Network.Advertised.MTU = 8950 // the packets of one agent are too large for the other
	ctx := c.System(t)
	alone := c.Create(t, clustertest.SessionInput(managertest.Vars{"kernels": 2}, "sleep", "600"))
	c.WaitFor(t, alone, lifecycle.Running)
	if n := sessionNetwork(t, c, alone); n != nil {
		t.Errorf("a session on one agent has %v", n)
	}
	c.Terminate(t, alone, true)
	c.WaitForEnd(t, alone)
	seen := map[int]bool{}
	for range 2 {
		id := spreads(t, c)
		c.WaitFor(t, id, lifecycle.Running)
		n := sessionNetwork(t, c, id)
		if n == nil || n.Mtu != 1450 || n.Vni < agentpb.MinVNI || seen[n.Vni] {
			t.Fatalf("the session has %v", n)
		}
		seen[n.Vni] = true
		subnet := netip.MustParsePrefix(n.Subnet)
		for _, k := range c.Client.Kernel.Query().Where(kernel.SessionID(id)).WithAgent().AllX(ctx) {
			here, there := c.Nodes[0], c.Nodes[1]
			if k.Edges.Agent.Name != here.Name {
				here, there = there, here
			}
			a := here.Network.Joined(k.ID)
			address := func(index int) netip.Addr {
				at := subnet.Addr().Next().Next()
				for range index {
					at = at.Next()
				}
				return at
			}
			if a.Session != id.String() || a.Subnet != subnet || a.Address != address(k.Index) || a.Overlay == nil ||
				a.Overlay.VNI != uint32(n.Vni) || a.Overlay.MTU != 1450 || len(a.Overlay.Peers) != 1 ||
				a.Overlay.Peers[0] != (network.Peer{Address: address(1 - k.Index), Endpoint: there.Network.Advertised.Endpoint}) {
				t.Errorf("kernel %d joins %+v %+v of %s, %d", k.Index, a, a.Overlay, subnet, n.Vni)
			}
		}
		c.Terminate(t, id, true)
		c.WaitForEnd(t, id)
		if n := sessionNetwork(t, c, id); n != nil {
			t.Errorf("after its end the session has %v", n)
		}
	}
	c.CheckInvariants(t, true)
}

// While no network is left, and on agents without a common network, sessions that need one wait
// with this reason.
func TestNoNetworkIsLeft(t *testing.T) {
	c := clustertest.New(t, 2)
	ctx := c.System(t)
	holds := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, holds, lifecycle.Running)
	c.Client.SessionNetwork.Create().SetSessionID(holds).SetVni(agentpb.MaxVNI).SetSubnet("10.214.0.0/16").SetMtu(1450).ExecX(ctx)
	id := spreads(t, c)
	c.WaitForReason(t, id, "no network for so many containers is left")
	c.Terminate(t, holds, true)
	c.WaitForEnd(t, holds)
	c.WaitFor(t, id, lifecycle.Running)
	if n := sessionNetwork(t, c, id); n.Vni != agentpb.MinVNI {
		t.Errorf("after the highest number comes %d", n.Vni)
	}
	c.Terminate(t, id, true)
	c.WaitForEnd(t, id)

	c.Nodes[1].Stop()
	c.Nodes[1].Network.Advertised = network.Reach{Off: "it is switched off there"}
	c.Join(t, c.Nodes[1], c.Manager)
	managertest.Eventually(t, "the agent has reported", func() bool {
		return c.Client.Agent.Query().Where(entagent.Name(c.Nodes[1].Name)).OnlyX(ctx).Overlay.Off != ""
	})
	id = spreads(t, c)
	c.WaitForReason(t, id, c.Nodes[1].Name+": it is switched off there")
	whole := c.Create(t, clustertest.SessionInput(managertest.Vars{"kernels": 2}, "sleep", "600"))
	c.WaitFor(t, whole, lifecycle.Running)
	c.Terminate(t, whole, true)
	c.Terminate(t, id, true)
	c.WaitForEnd(t, whole)
	c.WaitForEnd(t, id)
	c.CheckInvariants(t, true)
}

// A session gets the private networks of its group at its start. An empty list affects only
// sessions that start later.
func TestNetworksOfGroups(t *testing.T) {
	c := clustertest.New(t, 1)
	for _, tt := range []struct{ set, want []string }{
		{nil, []string{}},
		{[]string{"10.1.0.0/16", "10.1.2.3/32:443", "10.1.0.0/16"}, []string{"10.1.0.0/16", "10.1.2.3:443"}},
		{[]string{}, []string{}},
	} {
		if tt.set != nil {
			c.UpdateGroup(t, managertest.Vars{"allowedNetworks": tt.set})
		}
		id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
		c.WaitFor(t, id, lifecycle.Running)
		if got := c.Nodes[0].Network.Allowed(id); !slices.Equal(got, tt.want) {
			t.Errorf("after %q a session reaches %q, want %q", tt.set, got, tt.want)
		}
		c.Terminate(t, id, true)
		c.WaitForEnd(t, id)
	}
}
