package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

func newMachine(t *testing.T, config string) (*fixture.Tree, *machine) {
	t.Helper()
	tree := fixturetest.Start(t, "gaudi3-8")
	m, err := vendor{}.Open(driver.NewHost(tree.Roots()), []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return tree, m.(*machine)
}

func scan(t *testing.T, m *machine) (*pb.DeviceSnapshot, map[string]*pb.Device) {
	t.Helper()
	s, err := m.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Revision = 1
	if err := accelerator.Validate(vendor{}.Describe(), s); err != nil {
		t.Fatal(err)
	}
	all := map[string]*pb.Device{}
	for _, d := range s.GetDevices() {
		all[d.GetId()] = d
	}
	return s, all
}

func edit(t *testing.T, m *machine, work string, ids ...string) *pb.PrepareResponse {
	t.Helper()
	s, _ := scan(t, m)
	var list []*pb.Allocation
	for _, id := range ids {
		list = append(list, &pb.Allocation{Slot: "gaudi3.device", DeviceId: id, Amount: "1"})
	}
	grants, err := accelerator.Grants(s, list)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Edit(t.Context(), &driver.Request{PrepareRequest: &pb.PrepareRequest{WorkDir: work}, Grants: grants, Snapshot: s})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	board = "sys/devices/pci0000:15/0000:19:00.0/"
	first = "0000:19:00.0" // on the bus; its number is 7
)

func TestDevicesAndWhatTheyAreNot(t *testing.T) {
	tests := map[string]struct {
		file, content string
		want          string // reason, "" = given away
	}{
		"as it is":         {"numa_node", "0\n", ""},
		"gaudi 2":          {"device", "0x1020\n", ""},
		"the first gaudi":  {"device", "0x1000\n", "older than Gaudi 2"},
		"another product":  {"device", "0x2000\n", "neither Gaudi 2 nor Gaudi 3"},
		"no number":        {"device", "\xff\x00", "cannot be read"},
		"in reset":         {"status", "In reset after device release\n", "In reset"},
		"odd status":       {"status", "Dancing\n", "Dancing"},
		"module of others": {"module_id", "3\n", "2 devices say that module 3"},
		"module unknown":   {"module_id", "x\n", ""},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			tree, m := newMachine(t, "")
			if err := tree.Write(board+c.file, c.content); err != nil {
				t.Fatal(err)
			}
			_, all := scan(t, m)
			d := all[first]
			if why := strings.Join(d.GetRejectReasons(), " "); d.GetAllocatable() != (c.want == "") || !strings.Contains(why, c.want) {
				t.Errorf("allocatable %v, %q, want %q", d.GetAllocatable(), why, c.want)
			}
			if !all["0000:34:00.0"].GetAllocatable() {
				t.Error("another device suffers, too")
			}
		})
	}
}

func TestWithoutDriver(t *testing.T) {
	tree, m := newMachine(t, "")
	for _, gone := range []string{board + "driver", board + "accel"} {
		if err := tree.Remove(gone); err != nil {
			t.Fatal(err)
		}
	}
	if _, all := scan(t, m); !strings.Contains(strings.Join(all[first].GetRejectReasons(), " "), "habanalabs is not bound to it, but none") {
		t.Errorf("%v", all[first])
	}
}

func TestContainerGetsItsDevicesAndTheirNetwork(t *testing.T) {
	tree, m := newMachine(t, "")
	work := filepath.Join(t.TempDir(), "work")
	r := edit(t, m, work, first, "0000:b4:00.0")
	var nodes []string
	for _, n := range r.GetEdits().GetDeviceNodes() {
		nodes = append(nodes, strings.TrimPrefix(n.GetPath(), "/dev/"))
	}
	want := []string{"accel/accel0", "accel/accel_controlD0", "infiniband/uverbs11", "accel/accel7", "accel/accel_controlD7", "infiniband/uverbs4"}
	if !slices.Equal(nodes, want) {
		t.Errorf("nodes %v, want %v", nodes, want)
	}
	if e := r.GetEdits().GetEnv(); e["HABANA_VISIBLE_DEVICES"] != "0,7" || e["HABANA_VISIBLE_MODULES"] != "5,2" {
		t.Errorf("env %v", e)
	}
	if r.GetAttached()[1].GetDeviceId() != first {
		t.Errorf("attached %v", r.GetAttached())
	}
	var table struct {
		Info []ports `json:"MAC_ADDR_INFO"`
	}
	text, err := os.ReadFile(filepath.Join(work, "macAddrInfo.json"))
	if err == nil {
		err = json.Unmarshal(text, &table)
	}
	if err != nil || len(table.Info) != 2 || table.Info[1].Address != first || len(table.Info[1].MACs) != 24 ||
		table.Info[1].MACs[22] != "b0:fd:0b:d5:00:65" || table.Info[1].MACs[0] != inner {
		t.Errorf("%v, %s", err, text)
	}
	if n := len(r.GetEdits().GetMounts()); n != 2 {
		t.Errorf("%d mounts, want the table and gaudinet.json", n)
	}
	if err := tree.Write("root/etc/habanalabs/gaudinet.json", "{"); err != nil {
		t.Fatal(err)
	}
	if mounts := edit(t, m, work, first).GetEdits().GetMounts(); len(mounts) != 1 {
		t.Errorf("a broken gaudinet.json goes in: %v", mounts)
	}
	for _, check := range m.Check(t.Context()) {
		if check.GetOk() == (check.GetName() == "gaudinet") {
			t.Errorf("%v", check)
		}
	}
	_, m = newMachine(t, `{"scale_out": false, "sys_nice": true}`)
	e := edit(t, m, work, first).GetEdits()
	if len(e.GetMounts()) > 0 || len(e.GetDeviceNodes()) != 2 || !slices.Equal(e.GetCapabilities(), []string{"CAP_SYS_NICE"}) {
		t.Errorf("without its network: %v", e)
	}
}

func TestWholeBoardNeedsNoModules(t *testing.T) {
	_, m := newMachine(t, "")
	_, all := scan(t, m)
	var ids []string
	for id := range all {
		ids = append(ids, id)
	}
	if e := edit(t, m, t.TempDir(), ids...).GetEdits().GetEnv(); e["HABANA_VISIBLE_MODULES"] != "" || e["HABANA_VISIBLE_DEVICES"] != "0,1,2,3,4,5,6,7" {
		t.Errorf("%v", e)
	}
}

func TestMemoryOfContainers(t *testing.T) {
	tree, m := newMachine(t, "")
	s, _ := scan(t, m)
	set := &pb.WorkloadSet{Workloads: []*pb.Workload{{AllocationId: "a", Allocations: []*pb.Allocation{
		{DeviceId: "0000:1a:00.0"}, {DeviceId: "0000:33:00.0"},
	}}}}
	sum := func() (n float64, quality pb.Metric_Quality) {
		for _, metric := range m.SampleWorkloads(t.Context(), s, set)[0].GetMetrics() {
			if metric.GetName() == "gaudi_mem" {
				n, quality = n+metric.GetValue(), metric.GetQuality()
			}
		}
		return n, quality
	}
	if n, quality := sum(); n != (672*2+12000+24000)<<20 || quality != pb.Metric_ATTRIBUTED {
		t.Errorf("%v, %v", n, quality)
	}
	spoil := map[string]func() error{
		"fails":  func() error { return tree.Fail("hl-smi", 3, "no device") },
		"floods": func() error { return tree.Flood("hl-smi") },
		"hangs":  func() error { return tree.Hang("hl-smi") },
	}
	for name, do := range spoil {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		m.smi.until = time.Time{}
		if n, quality := sum(); n != 0 || quality != pb.Metric_UNAVAILABLE {
			t.Errorf("hl-smi %s: %v, %v", name, n, quality)
		}
		if _, all := scan(t, m); !all[first].GetAllocatable() {
			t.Errorf("hl-smi %s: %v", name, all[first])
		}
	}
}

func TestSettings(t *testing.T) {
	for config, field := range map[string]string{`{"scale_out": "yes"}`: "scale_out", `{"macvlan": true}`: "macvlan"} {
		if _, err := (vendor{}).Open(driver.NewHost(nil), []byte(config)); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
