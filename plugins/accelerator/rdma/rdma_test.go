package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

func open(t *testing.T, config string) *machine {
	t.Helper()
	return bench.Open(t, fixturetest.Start(t, "rdma-4").Roots(), config)
}

func TestCardsHaveTheirPlace(t *testing.T) {
	s := bench.Scan(t, open(t, ""))
	var got []string
	for _, d := range s.Devices {
		got = append(got, fmt.Sprint(d.Attributes["name"], " ", d.PcieRoot, " ", d.GetNumaNode(), " ", d.Allocatable, " ", d.Attributes["rate"]))
	}
	want := []string{
		"mlx5_0 pci0000:16 0 true 400 Gb/sec (4X NDR)", "mlx5_1 pci0000:16 0 true 400 Gb/sec (4X NDR)",
		"mlx5_2 pci0000:97 1 true 400 Gb/sec (4X NDR)", "mlx5_3 pci0000:97 1 false ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("cards are %q, want %q", got, want)
	}
	drivertest.Judged(t, s.Devices[3], "DOWN") // it has no cable
	var near []string
	for _, l := range s.Links {
		near = append(near, fmt.Sprint(l.A, " ", l.B, " ", l.Type))
	}
	if want := []string{"0000:19:00.0 0000:19:00.1 SAME_BOARD", "0000:98:00.0 0000:b1:00.0 PCIE"}; !slices.Equal(near, want) {
		t.Errorf("links are %q, want %q", near, want)
	}
}

func TestWhatAContainerGets(t *testing.T) {
	m := open(t, "")
	out := drivertest.Edit(t, m, drivertest.Request(t, bench.Scan(t, m),
		&pb.Allocation{Slot: whole, DeviceId: "0000:98:00.0", Amount: "1"}, &pb.Allocation{Slot: shared, DeviceId: "0000:19:00.0", Amount: "1"}))
	nodes := drivertest.Nodes(out)
	if want := []string{"/dev/infiniband/uverbs0", "/dev/infiniband/uverbs2", "/dev/infiniband/rdma_cm"}; !slices.Equal(nodes, want) {
		t.Errorf("files are %q, want %q", nodes, want)
	}
	if len(out.Edits.Env) > 0 || out.ResourceData["RDMA_DEVICES"] != "mlx5_0:1,mlx5_2:1" {
		t.Errorf("environment is %v, resources are %v", out.Edits.Env, out.ResourceData)
	}
	if l := out.Edits.Rlimits; len(l) != 1 || l[0].Name != "memlock" || l[0].Soft != ^uint64(0) {
		t.Errorf("limits are %v", l)
	}
}

func TestBytesAreCounted(t *testing.T) {
	m := open(t, "")
	for _, x := range m.Sample(t.Context(), bench.Scan(t, m)) {
		if x.DeviceId == "0000:19:00.1" && x.Name == "rdma_rx" && (x.Value != 32000 || x.Kind != pb.Metric_COUNTER) {
			t.Errorf("received %v %v, want 32000", x.Value, x.Kind)
		}
	}
}

func TestBadSettings(t *testing.T) {
	bench.Refuses(t, map[string]string{`{"shared": -1}`: "shared", `{"shared": 1025}`: "1024", `{"x": 1}`: "x"})
}

// The manager sets the variables of communication libraries from these attributes.
func TestWhatLibrariesNeed(t *testing.T) {
	machine := fixturetest.Start(t, "rdma-4")
	card := "sys/devices/pci0000:97/0000:98:00.0/infiniband/mlx5_2/ports/1/"
	for file, text := range map[string]string{
		"link_layer":        "Ethernet\n",
		"gid_attrs/types/0": "IB/RoCE v1\n", "gids/0": "fe80:0000:0000:0000:ba3f:d2ff:fe12:3412\n",
		"gid_attrs/types/1": "RoCE v2\n", "gids/1": "fe80:0000:0000:0000:ba3f:d2ff:fe12:3412\n",
		"gid_attrs/types/2": "IB/RoCE v1\n", "gids/2": "0000:0000:0000:0000:0000:ffff:0a01:0203\n",
		"gid_attrs/types/3": "RoCE v2\n", "gids/3": "0000:0000:0000:0000:0000:ffff:0a01:0203\n",
	} {
		drivertest.Spoil(t, machine, card+file, text)
	}
	devices := bench.Scan(t, bench.Open(t, machine.Roots(), "")).Devices
	if at := devices[2].Attributes; at["gid_index"] != "3" || at["peer_memory"] != "nvidia_peermem" {
		t.Errorf("the RoCE card has %v", at)
	}
	if at := devices[0].Attributes; at["gid_index"] != "" || at["link_layer"] != "InfiniBand" {
		t.Errorf("the InfiniBand card has %v", at)
	}
}
