package graph_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/managertest"
)

// TestDevicesKnowEachOther reads a GPU, its partitions and its neighbour as a member sees them.
func TestDevicesKnowEachOther(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	c, ctx := w.Client, w.System(t)
	a := c.Agent.Create().SetName("gpus").SetResourceGroup(w.Group).
		SetCounters(report.Counters{"x:0": {"memory": 8, "compute": 7}}).
		SetLinks([]report.Link{
			{A: "x:0", B: "x:1", Type: "nvlink", Distance: 1, GBps: 400, P2P: true},
			{A: "x:nic", B: "x:0", Type: "nic", Distance: 3},
		}).SaveX(ctx)
	whole := c.Device.Create().SetAgent(a).SetDeviceID("x:0").SetPlugin("x").SetPciAddress("0000:03:00.0").SetPcieRoot("pci0000:00").
		SetMemoryBytes(80 << 30).SetProcessingUnits(132).SetGroups([]string{"x:tray"}).
		SetAttributes(map[string]string{"enforcement": "mig"}).SaveX(ctx)
	part := c.Device.Create().SetAgent(a).SetDeviceID("x:0/1").SetParent("x:0").SetCapacity(resource.Slots{"x.device:1g-mig": 1}).
		SetConsumes([]report.CounterUse{{Set: "x:0", Amounts: map[string]int64{"memory": 2, "compute": 1}}}).SaveX(ctx)
	other := c.Device.Create().SetAgent(a).SetDeviceID("x:1").SaveX(ctx)
	elsewhere := c.Agent.Create().SetName("more").SetResourceGroup(w.Group).SaveX(ctx)
	c.Device.Create().SetAgent(elsewhere).SetDeviceID("x:0").ExecX(ctx)
	c.Device.Create().SetAgent(elsewhere).SetDeviceID("x:0/1").SetParent("x:0").ExecX(ctx)
	w.Samples(t).Record(ctx, a.ID, &agentpb.StatsReport{UnixMs: 1_700_000_000_000, Node: []*agentpb.Metric{
		{Name: "cpu_util", Value: 3, Unit: "percent"},
		{Name: "x_util", DeviceId: "x:0", Value: 55, Capacity: 100, Unit: "percent", Quality: agentpb.Metric_ESTIMATED},
	}})

	type ref struct{ ID string }
	type link struct {
		PeerID string
		Peer   *ref
		Type   string
		Gbps   float64
		P2P    bool
	}
	type counter struct {
		Set, Name     string
		Amount, Total int64
	}
	type device struct {
		PciAddress, PcieRoot, Enforcement string
		MemoryBytes                       int64
		ProcessingUnits                   int
		Groups                            []string
		Parent                            *ref
		Partitions                        []ref
		Links                             []link
		Counters                          []counter
		Metrics                           []struct {
			Name    string
			Value   float64
			Quality string
		}
	}
	const q = `query($ids: [ID!]!) { nodes(ids: $ids) { ... on Device {
		pciAddress pcieRoot enforcement memoryBytes processingUnits groups parent { id } partitions { id }
		links { peerID: peerId peer { id } type gbps p2p } counters { set name amount total } metrics { name value quality }
	} } }`
	var got struct{ Nodes []device }
	m.As(t, w.A.Member).Must(t, q, managertest.Vars{"ids": []string{whole.ID.String(), part.ID.String(), other.ID.String()}}, &got)
	none := device{Groups: []string{}, Partitions: []ref{}, Links: []link{}, Counters: []counter{}}
	want := []device{none, none, none}
	want[0].PciAddress, want[0].PcieRoot, want[0].Enforcement = "0000:03:00.0", "pci0000:00", "MIG"
	want[0].MemoryBytes, want[0].ProcessingUnits, want[0].Groups = 80<<30, 132, []string{"x:tray"}
	want[0].Partitions = []ref{{part.ID.String()}}
	want[0].Links = []link{{"x:1", &ref{other.ID.String()}, "NVLINK", 400, true}, {PeerID: "x:nic", Type: "NIC"}}
	want[1].Parent = &ref{whole.ID.String()}
	want[1].Counters = []counter{{"x:0", "compute", 1, 7}, {"x:0", "memory", 2, 8}}
	want[2].Links = []link{{"x:0", &ref{whole.ID.String()}, "NVLINK", 400, true}}
	samples := got.Nodes[0].Metrics
	for i := range got.Nodes {
		got.Nodes[i].Metrics = nil
	}
	if diff := cmp.Diff(want, got.Nodes); diff != "" {
		t.Error(diff)
	}
	if len(samples) != 1 || samples[0].Name != "x_util" || samples[0].Value != 55 || samples[0].Quality != "ESTIMATED" {
		t.Errorf("samples %+v", samples)
	}

	var agent struct {
		Node struct {
			StatsAt string
			Links   []struct{ A, B, Type string }
		}
	}
	m.As(t, w.A.Member).Must(t, `query($id: ID!) { node(id: $id) { ... on Agent { statsAt links { a b type } } } }`, managertest.Vars{"id": a.ID.String()}, &agent)
	if agent.Node.StatsAt != "2023-11-14T22:13:20Z" || len(agent.Node.Links) != 2 || agent.Node.Links[0].B != "x:1" {
		t.Errorf("agent %+v", agent.Node)
	}
}
