package declarative

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

func TestBadDescriptionsNameTheField(t *testing.T) {
	const good = "key: acme\nvendor: ACME\nproducts: [{slot: acme.device, name: One, pci: [\"ac3e:0001\"]}]\n"
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"": "products", "key: acme\nvendor: ACME\n": "products", good + "speed: 9\n": "speed",
		strings.Replace(good, "ac3e:0001", "ac3e", 1):                                             "products[0].pci",
		strings.Replace(good, "acme.device", "Acme Device", 1):                                    "Acme Device",
		good + "nodes: [{path: ../sda}]\n":                                                        "nodes[0]",
		good + "nodes: [{path: a, glob: b}]\n":                                                    "nodes[0]",
		good + "mounts: [{source: etc}]\n":                                                        "mounts[0]",
		good + "env: [{name: \"A=B\"}]\n":                                                         "env[0].name",
		good + "program: {run: [/bin/x], format: json, match: a, by: pci}":                        "program.run",
		good + "program: {run: [x], format: xml, match: a, by: pci}":                              "program.format",
		good + "program: {run: [x], format: lines, line: \"(\", match: a}":                        "program.line",
		good + "program: {run: [x], format: json}":                                                "by must be pci or index",
		good + "program: {run: [x], format: json, match: a, by: pci, fields: {speed: {from: x}}}": "speed",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// acme opens the machine of the tests of the plugin declarative.
func acme(t *testing.T) (drivertest.Bench[*machine], *machine) {
	t.Helper()
	text, err := os.ReadFile("../../declarative/testdata/acme.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	bench := drivertest.Bench[*machine]{Driver: New(spec)}
	return bench, bench.Open(t, fixturetest.Start(t, "../../declarative/testdata/acme").Roots(), "")
}

func TestWhatAContainerGets(t *testing.T) {
	bench, m := acme(t)
	out := drivertest.Edit(t, m, drivertest.Request(t, bench.Scan(t, m), &pb.Allocation{Slot: "acme.device", DeviceId: "0000:01:00.0", Amount: "1"}))
	nodes := drivertest.Nodes(out)
	if want := []string{"/dev/acme0", "/dev/acme/card1_debug", "/dev/acme/control"}; !slices.Equal(nodes, want) {
		t.Errorf("nodes are %q, want %q", nodes, want)
	}
	if got := fmt.Sprint(out.Edits.Env); got != "map[ACME_BUS:0000:01:00.0 ACME_CARDS:0]" {
		t.Errorf("environment is %s", got)
	}
	if got := out.Edits.Rlimits; len(got) != 1 || got[0].Name != "memlock" {
		t.Errorf("limits are %v", got)
	}
	if got := out.Edits.Mounts; len(got) != 1 || got[0].Target != "/opt/acme" || !strings.HasSuffix(got[0].Source, "/root/opt/acme") {
		t.Errorf("mounts are %v", got)
	}
}

func TestMeasurements(t *testing.T) {
	bench, m := acme(t)
	s := bench.Scan(t, m)
	bench.Measures(t, m, s, map[string]string{
		"acme_mem 0000:00:00.0": "1.2582912e+08 of 8.589934592e+09 MEASURED", "acme_temperature 0000:00:00.0": "41 MEASURED",
		"acme_util 0000:00:00.0": "0 UNAVAILABLE", "acme_mem 0000:02:00.0": "0 UNAVAILABLE",
	})
	// A device works for the workload it is allocated to. Unknown devices are omitted.
	w := m.SampleWorkloads(t.Context(), s, &pb.WorkloadSet{Workloads: []*pb.Workload{
		{AllocationId: "a", Allocations: []*pb.Allocation{{DeviceId: "0000:00:00.0"}, {DeviceId: "gone"}}},
	}})
	if len(w) != 1 || len(w[0].GetMetrics()) < 2 {
		t.Fatalf("%v", w)
	}
	if mem := w[0].GetMetrics()[1]; mem.GetName() != "acme_mem" || mem.GetValue() != 1.2582912e+08 || mem.GetQuality() != pb.Metric_ATTRIBUTED {
		t.Errorf("%v", mem)
	}
}

// TestADeviceThatGoesLeavesTheOthersTheirs removes the first of two cards, with its file and
// without.
func TestADeviceThatGoesLeavesTheOthersTheirs(t *testing.T) {
	spec, err := Parse([]byte("key: acme\nvendor: ACME\nproducts: [{slot: acme.device, name: One, pci: [\"ac3e:0001\"]}]\nnodes: [{glob: \"acme/card[0-9]\"}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	tree := fixturetest.Start(t, "../../declarative/testdata/acme")
	remove := func(path string) {
		if err := tree.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	remove("dev/acme/card2") // of another product
	m, err := New(spec).Open(driver.NewHost(tree.Roots()), nil)
	if err != nil {
		t.Fatal(err)
	}
	second := func() string {
		s, err := m.Scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d := s.Devices[len(s.Devices)-1]
		grants, err := accelerator.Grants(s, []*pb.Allocation{{Slot: "acme.device", DeviceId: d.Id, Amount: "1"}})
		if err != nil {
			return err.Error()
		}
		out, err := m.Edit(t.Context(), &driver.Request{PrepareRequest: &pb.PrepareRequest{}, Grants: grants, Snapshot: s})
		if err != nil {
			return err.Error()
		}
		return d.Id + " " + d.Attributes["index"] + " " + out.Edits.DeviceNodes[0].Path
	}
	for _, step := range []struct{ gone, want string }{
		{"", "0000:01:00.0 1 /dev/acme/card1"},
		{"sys/bus/pci/devices/0000:00:00.0", "0000:01:00.0 1 /dev/acme/card1"},
		{"dev/acme/card0", "0000:01:00.0 1 /dev/acme/card1"},
		{"dev/acme/card1", "cannot match files to devices"},
	} {
		if step.gone != "" {
			remove(step.gone)
		}
		if got := second(); !strings.Contains(got, step.want) {
			t.Errorf("without %q: %s, want %s", step.gone, got, step.want)
		}
	}
	for _, name := range []string{"3", "4", "5"} { // more files than devices
		if err := tree.Write("dev/acme/card"+name, ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := second(); !strings.Contains(got, "cannot match files to devices") {
		t.Errorf("three files for one device: %s", got)
	}
}

// A device at the temperature limit that the program reports is not allocatable.
func TestTooHot(t *testing.T) {
	m := &machine{Spec: &Spec{Program: &Program{
		Run: []string{"acme-stat"}, By: "index", Fields: map[string]Field{"temperature": {From: "now"}, "temperature_max": {From: "most"}},
	}}}
	for now, want := range map[string]pb.Health{"89 C": pb.Health_HEALTH_HEALTHY, "90 C": pb.Health_HEALTH_UNHEALTHY} {
		d := &pb.Device{Health: pb.Health_HEALTH_HEALTHY, Allocatable: true}
		m.complete(d, found{}, report{"0": values{"now": now, "most": "90 C"}}, nil)
		if d.GetHealth() != want || d.GetAllocatable() != (want == pb.Health_HEALTH_HEALTHY) {
			t.Errorf("%s: %v", now, d)
		}
	}
}

// If the output contradicts itself, none of it is used, and no device is allocatable.
func TestAProgramThatListsADeviceTwice(t *testing.T) {
	p := &Program{Run: []string{"acme-stat"}, Format: "lines", Line: `^card(?P<card>\d+)`, Match: "card", By: "index"}
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "acme-stat"), []byte("#!/bin/sh\necho card0\necho card1\necho card0\n"), 0o700); err != nil { //nolint:gosec // must be executable
		t.Fatal(err)
	}
	m := &machine{Spec: &Spec{Program: p}, Host: driver.NewHost(&pb.Roots{Path: []string{dir}})}
	if _, err := m.ask(t.Context()); err == nil || !strings.Contains(err.Error(), `lists "0" twice`) {
		t.Errorf("%v", err)
	}
}
