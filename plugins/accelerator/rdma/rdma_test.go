package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

func open(t *testing.T, config string) driver.Machine {
	t.Helper()
	m, err := vendor{}.Open(driver.NewHost(fixturetest.Start(t, "rdma-4").Roots()), []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func scan(t *testing.T, m driver.Machine) *pb.DeviceSnapshot {
	t.Helper()
	s, err := m.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCardsHaveTheirPlace(t *testing.T) {
	s := scan(t, open(t, ""))
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
	if why := strings.Join(s.Devices[3].RejectReasons, " "); !strings.Contains(why, "DOWN") {
		t.Errorf("the card without a cable is rejected for %q", why)
	}
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
	s := scan(t, m)
	grants, err := accelerator.Grants(s, []*pb.Allocation{
		{Slot: whole, DeviceId: "0000:98:00.0", Amount: "1"}, {Slot: shared, DeviceId: "0000:19:00.0", Amount: "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Edit(t.Context(), &driver.Request{PrepareRequest: &pb.PrepareRequest{}, Grants: grants, Snapshot: s})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, n := range out.Edits.DeviceNodes {
		nodes = append(nodes, n.Path)
	}
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
	for _, x := range m.(driver.Sampler).Sample(t.Context(), scan(t, m)) {
		if x.DeviceId == "0000:19:00.1" && x.Name == "rdma_rx" && (x.Value != 32000 || x.Kind != pb.Metric_COUNTER) {
			t.Errorf("received %v %v, want 32000", x.Value, x.Kind)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for text, want := range map[string]string{`{"shared": -1}`: "shared", `{"shared": 1025}`: "1024", `{"interface": "a b"}`: "interface", `{"x": 1}`: "x"} {
		if _, err := (vendor{}).Open(driver.NewHost(nil), []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
