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
	m := open(t, `{"interface": "net1"}`)
	out := drivertest.Edit(t, m, drivertest.Request(t, bench.Scan(t, m),
		&pb.Allocation{Slot: whole, DeviceId: "0000:98:00.0", Amount: "1"}, &pb.Allocation{Slot: shared, DeviceId: "0000:19:00.0", Amount: "1"}))
	nodes := drivertest.Nodes(out)
	if want := []string{"/dev/infiniband/uverbs0", "/dev/infiniband/uverbs2", "/dev/infiniband/rdma_cm"}; !slices.Equal(nodes, want) {
		t.Errorf("files are %q, want %q", nodes, want)
	}
	want := "map[HCCL_SOCKET_IFNAME:net1 NCCL_IB_HCA:=mlx5_0:1,mlx5_2:1 NCCL_SOCKET_IFNAME:=net1 UCX_NET_DEVICES:mlx5_0:1,mlx5_2:1]"
	if got := fmt.Sprint(out.Edits.Env); got != want {
		t.Errorf("environment is %s, want %s", got, want)
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
	bench.Refuses(t, map[string]string{`{"shared": -1}`: "shared", `{"shared": 1025}`: "1024", `{"interface": "a b"}`: "interface", `{"x": 1}`: "x"})
}
