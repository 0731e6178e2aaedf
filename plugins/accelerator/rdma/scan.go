package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is a host with cards.
type machine struct {
	*driver.Host
	config
}

// habana is the PCI vendor of Gaudi cards, whose internal network looks like RDMA devices. The
// gaudi plugin provides those.
const habana = "1da3"

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,63}$`)

// Scan implements driver.Machine.
func (m *machine) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: slots(m.Shared), DriverInfo: map[string]string{}}
	verbs := m.verbs()
	for _, name := range driver.Names(m.Sys("class/infiniband")) {
		dir, err := filepath.EvalSymlinks(m.Sys("class/infiniband", name, "device"))
		if err != nil || !nameForm.MatchString(name) {
			continue // without hardware: a software device
		}
		at, ok := m.PCIAt(filepath.Base(dir))
		if !ok || at.Vendor == habana {
			continue
		}
		s.Devices = append(s.Devices, m.card(name, at, verbs[name]))
	}
	for i, a := range s.Devices {
		for _, b := range s.Devices[i+1:] {
			if l := link(a, b); l != nil {
				s.Links = append(s.Links, l)
			}
		}
	}
	if gpudirect := m.peer(); gpudirect != "" {
		s.DriverInfo["gpudirect"] = gpudirect
	}
	return s, nil
}

// verbs maps cards to their device files.
func (m *machine) verbs() map[string]string {
	out := map[string]string{}
	for _, name := range driver.Names(m.Sys("class/infiniband_verbs")) {
		if card := driver.Text(m.Sys("class/infiniband_verbs", name, "ibdev")); card != "" && nameForm.MatchString(name) {
			out[card] = "infiniband/" + name
		}
	}
	return out
}

// peer returns the name of the module that gives cards access to GPU memory.
func (m *machine) peer() string {
	for _, module := range []string{"nvidia_peermem", "nv_peer_mem", "amdgpu"} {
		if driver.Exists(m.Sys("module", module)) {
			return module
		}
	}
	return ""
}

func (m *machine) card(name string, at driver.PCI, node string) *pb.Device {
	d := &pb.Device{
		Id: at.Address, Model: cmp.Or(driver.Text(m.class(name, "hca_type")), at.Driver, "RDMA card"), Serial: driver.Text(m.class(name, "node_guid")),
		Health: pb.Health_HEALTH_HEALTHY, Allocatable: true, Capacity: map[string]string{whole: "1"},
		Attributes: map[string]string{"name": name, "node": node},
	}
	if module := m.peer(); module != "" {
		d.Attributes["peer_memory"] = module
	}
	if m.Shared > 0 {
		d.Capacity[shared] = strconv.Itoa(m.Shared)
	}
	at.Place(d)
	for to, file := range map[string]string{"firmware": "fw_ver", "board": "board_id"} {
		if v := driver.Text(m.class(name, file)); v != "" {
			d.Attributes[to] = v
		}
	}
	if nets := driver.Names(at.Dir, "net"); len(nets) > 0 {
		d.Attributes["interfaces"] = driver.Clean(strings.Join(nets, ","), 200)
	}
	var active, states []string
	for _, port := range driver.Names(m.class(name, "ports")) {
		if _, err := strconv.Atoi(port); err != nil {
			continue
		}
		state := driver.Text(m.class(name, "ports", port, "state")) // "4: ACTIVE"
		states = append(states, fmt.Sprintf("port %s is %q", port, state))
		if strings.HasPrefix(state, "4:") {
			active = append(active, port)
			d.Attributes["link_layer"] = driver.Text(m.class(name, "ports", port, "link_layer"))
			d.Attributes["rate"] = driver.Text(m.class(name, "ports", port, "rate"))
		}
	}
	d.Attributes["active_ports"] = strings.Join(active, ",")
	if index := m.gid(name, active); index != "" && d.Attributes["link_layer"] == "Ethernet" {
		d.Attributes["gid_index"] = index
	}
	if len(active) == 0 {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, driver.Clean("no port is active: "+strings.Join(states, ", "), 200)
		driver.Reject(d, "%s", d.HealthMessage)
	}
	if node == "" {
		driver.Reject(d, "it has no file /dev/infiniband/uverbs…: the module ib_uverbs is not loaded")
	} else if _, err := m.Node(node); err != nil {
		driver.Reject(d, "%v", err)
	}
	return d
}

// gid returns the index of the first GID of a card's first active port that is an IPv4 address of
// RoCE 2, which is the one that communication libraries are configured to use. InfiniBand has one GID.
// Source: Linux, Documentation/ABI/testing/sysfs-class-infiniband.
func (m *machine) gid(name string, active []string) string {
	if len(active) == 0 {
		return ""
	}
	types := m.class(name, "ports", active[0], "gid_attrs", "types")
	var indices []int
	for _, index := range driver.Names(types) {
		if n, err := strconv.Atoi(index); err == nil && driver.Text(types, index) == "RoCE v2" &&
			strings.HasPrefix(driver.Text(m.class(name, "ports", active[0], "gids", index)), "0000:0000:0000:0000:0000:ffff:") {
			indices = append(indices, n)
		}
	}
	if len(indices) == 0 {
		return ""
	}
	return strconv.Itoa(slices.Min(indices))
}

func (m *machine) class(name string, elem ...string) string {
	return m.Sys(append([]string{"class/infiniband", name}, elem...)...)
}

// link returns the distance of two cards: ports of one board, the same PCI root, or the same NUMA
// node.
func link(a, b *pb.Device) *pb.Link {
	board := func(d *pb.Device) string { return strings.TrimRight(d.GetPciAddress(), "01234567") }
	switch {
	case board(a) == board(b):
		return &pb.Link{A: a.Id, B: b.Id, Type: pb.Link_SAME_BOARD, Distance: 1}
	case a.PcieRoot != "" && a.PcieRoot == b.PcieRoot:
		return &pb.Link{A: a.Id, B: b.Id, Type: pb.Link_PCIE, Distance: 10}
	case a.NumaNode != nil && b.NumaNode != nil && a.GetNumaNode() == b.GetNumaNode():
		return &pb.Link{A: a.Id, B: b.Id, Type: pb.Link_PCIE, Distance: 20}
	}
	return nil
}

// Check implements driver.Checker.
func (m *machine) Check(context.Context) []*pb.Check {
	mode := driver.Text(m.Sys("module/ib_core/parameters/netns_mode"))
	return []*pb.Check{
		{Name: "verbs", Ok: driver.Exists(m.Sys("class/infiniband_verbs")), Detail: "/sys/class/infiniband_verbs: the module ib_uverbs"},
		{Name: "namespaces", Ok: mode != "N" && mode != "0", Detail: "netns_mode of ib_core must be shared, or no container sees a card (rdma system set netns shared)"},
		{Name: "gpudirect", Ok: true, Detail: cmp.Or(m.peer(), "no module lets cards reach the memory of GPUs")},
	}
}
