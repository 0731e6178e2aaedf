package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// A machine has one free accelerator on each of its NUMA nodes, without links. Two of them are near
// enough for a group that prefers near accelerators, and too far from each other for a group that
// requires a common node.
func TestTopologyOfAGroup(t *testing.T) {
	c := clustertest.New(t, 0)
	ctx := c.System(t)
	c.Grow(t, 1, agent.PluginConfig{Path: testenv.Plugin(t, "accelerator/mock"), Force: true, ConfigJSON: []byte(`{"devices": 4, "numa_nodes": 2, "links": "none"}`)})
	managertest.Eventually(t, "four accelerators", func() bool {
		return c.Client.Device.Query().Where(device.Plugin("mock"), device.Allocatable(true), device.HealthEQ(device.HealthHealthy)).CountX(ctx) == 4
	})
	accelerators := func(n string) managertest.Vars {
		return clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.05", "mem": "16m", "mock.device": n}}, "sleep", "600")
	}
	var ids []uuid.UUID
	for range 4 {
		ids = append(ids, c.Create(t, accelerators("1")))
	}
	for _, id := range ids {
		c.WaitFor(t, id, lifecycle.Running)
	}
	nodes := func(id uuid.UUID) (nodes []int) {
		for _, a := range c.Client.Allocation.Query().Where(allocation.SessionID(id), allocation.Slot("mock.device"), allocation.FreedAtIsNil()).WithDevice().AllX(ctx) {
			nodes = append(nodes, *a.Edges.Device.NumaNode)
		}
		return nodes
	}
	freed := map[int]bool{}
	for _, id := range ids {
		if node := nodes(id)[0]; !freed[node] {
			freed[node] = true
			c.Terminate(t, id, true)
			c.WaitForEnd(t, id)
		}
	}
	if len(freed) != 2 {
		t.Fatalf("accelerators are on nodes %v", freed)
	}

	c.UpdateGroup(t, managertest.Vars{"topology": "NODE"})
	id := c.Create(t, accelerators("2"))
	c.WaitForReason(t, id, "far from each other")
	if w := whyOf(t, c, id); len(w.Dropped) != 1 || w.Dropped[0].Check != "topology" || w.Dropped[0].Slot != "mock.device" || w.Dropped[0].Count != 1 {
		t.Errorf("it waits for %+v: %s", w.Dropped, w.Summary)
	}
	c.UpdateGroup(t, managertest.Vars{"topology": "PREFER"})
	c.WaitFor(t, id, lifecycle.Running)
	if on := nodes(id); len(on) != 2 || on[0] == on[1] {
		t.Errorf("it has accelerators of nodes %v", on)
	}

	const change = `mutation($in: UpdateResourceGroupInput!) { updateResourceGroup(input: $in) { resourceGroup { topology } } }`
	super := c.Manager.As(t, c.Superadmin)
	var got struct {
		UpdateResourceGroup struct{ ResourceGroup struct{ Topology string } }
	}
	super.Must(t, change, managertest.Vars{"in": managertest.Vars{"id": c.Group.ID, "topology": "ROOT"}}, &got)
	if topology := got.UpdateResourceGroup.ResourceGroup.Topology; topology != "ROOT" {
		t.Errorf("the group's topology is %s", topology)
	}
	errs := super.Ask(t, change, managertest.Vars{"in": managertest.Vars{"id": c.Group.ID, "topology": "near"}}, nil)
	if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "topology" || errs[0].Extensions.Limit != "PREFER, NODE, ROOT, LINKED" {
		t.Errorf("a topology that there is not: %s", errs)
	}
	errs = super.Ask(t, `mutation($id: ID!) { updateResourceGroup(input: {id: $id, topology: near}) { resourceGroup { id } } }`, managertest.Vars{"id": c.Group.ID}, nil)
	if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Limit != "PREFER, NODE, ROOT, LINKED" {
		t.Errorf("a topology that there is not, in the query: %s", errs)
	}
}

// A machine of two NUMA nodes has an accelerator on each. A session gets its cpu and memory from
// the node of its accelerator, as long as that node has enough.
func TestHostIsNearTheAccelerator(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two processors")
	}
	c := clustertest.New(t, 0)
	ctx := c.System(t)
	n := &clustertest.Node{Name: "a", Dir: t.TempDir(), Sysfs: t.TempDir(), Network: clustertest.NewFakeNetwork(len(c.Nodes)), Host: fake.NewHost(clustertest.PulledImage()),
		Plugins: []agent.PluginConfig{{Path: testenv.Plugin(t, "accelerator/mock"), Force: true, ConfigJSON: []byte(`{"devices": 2, "numa_nodes": 2}`)}}}
	for path, text := range map[string]string{
		"devices/system/node/node0/cpulist": "0", "devices/system/node/node0/meminfo": "Node 0 MemTotal: 4194304 kB",
		"devices/system/node/node1/cpulist": fmt.Sprintf("1-%d", runtime.NumCPU()-1), "devices/system/node/node1/meminfo": "Node 1 MemTotal: 4194304 kB",
	} {
		path = filepath.Join(n.Sysfs, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.Nodes = append(c.Nodes, n)
	c.Join(t, n, c.Manager)
	managertest.Eventually(t, "two accelerators", func() bool {
		return c.Client.Device.Query().Where(device.Plugin("mock"), device.Allocatable(true), device.HealthEQ(device.HealthHealthy)).CountX(ctx) == 2
	})
	used := map[int]bool{}
	for range 2 {
		id := c.Create(t, clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.5", "mem": "1g", "mock.device": "1"}}, "sleep", "600"))
		c.WaitFor(t, id, lifecycle.Running)
		nodes := map[int][]string{}
		for _, a := range c.Client.Allocation.Query().Where(allocation.SessionID(id), allocation.FreedAtIsNil()).WithDevice().AllX(ctx) {
			nodes[*a.Edges.Device.NumaNode] = append(nodes[*a.Edges.Device.NumaNode], a.Slot)
			used[*a.Edges.Device.NumaNode] = true
		}
		if len(nodes) != 1 {
			t.Errorf("it has something of %d nodes: %v", len(nodes), nodes)
		}
	}
	if len(used) != 2 {
		t.Errorf("both sessions are on the same node: %v", used)
	}
}
