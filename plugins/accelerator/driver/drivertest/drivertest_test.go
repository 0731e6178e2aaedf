package drivertest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

// acme is a driver with one good and one bad card.
type acme struct{}

func (acme) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: "acme", Vendor: "ACME", PluginVersion: "1",
		Slots: []*pb.SlotType{{Name: "acme.device", Kind: pb.SlotType_COUNT, DisplayName: "ACME", Unit: "card"}},
	}
}

func (acme) Open(_ *driver.Host, config []byte) (driver.Machine, error) {
	if len(config) > 0 {
		return nil, errors.New("speed: want none")
	}
	return &acme{}, nil
}

func (a acme) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	good := &pb.Device{Id: "good", Model: "card", Health: pb.Health_HEALTH_HEALTHY, Allocatable: true, Capacity: map[string]string{"acme.device": "1"}}
	bad := &pb.Device{Id: "bad", Model: "card"}
	driver.Reject(bad, "too old")
	return &pb.DeviceSnapshot{Slots: a.Describe().GetSlots(), Devices: []*pb.Device{good, bad}}, nil
}

func (acme) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	e := &pb.ContainerEdits{}
	for _, g := range r.Grants {
		e.DeviceNodes = append(e.DeviceNodes, &pb.DeviceNode{Path: "/dev/" + g.Device.GetId(), HostPath: "/dev/null", Permissions: "rw"})
	}
	return &pb.PrepareResponse{Edits: e}, nil
}

func (acme) Sample(context.Context, *pb.DeviceSnapshot) []*pb.Metric {
	return []*pb.Metric{driver.Gauge("acme_power", "good", "watt", 40, 75, nil), driver.Gauge("acme_clock", "good", "mhz", 7, 0, nil)}
}

// recorder is a test that records its failures and continues.
type recorder struct {
	testing.TB
	said []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, a ...any) {
	r.said = append(r.said, fmt.Sprintf(format, a...))
}

var bench = drivertest.Bench[*acme]{Driver: acme{}}

func TestWhatHoldsSaysNothing(t *testing.T) {
	m := bench.Open(t, nil, "")
	s := bench.Scan(t, m)
	bench.Refuses(t, map[string]string{`{"speed": 1}`: "speed"})
	bench.Measures(t, m, s, map[string]string{"acme_power good": "40 of 75 MEASURED", "acme_clock good": "7 MEASURED", "acme_mem good": ""})
	drivertest.Judged(t, bench.Devices(t, m)["good"], "")
	drivertest.Judged(t, bench.Devices(t, m)["bad"], "old")
	r := drivertest.Request(t, s, drivertest.Whole(drivertest.Pick(t, s, "good")...)...)
	if got := drivertest.Nodes(drivertest.Edit(t, m, r)); !slices.Equal(got, []string{"/dev/good"}) {
		t.Errorf("nodes %q", got)
	}
}

func TestWhatDoesNotHoldIsSaid(t *testing.T) {
	m := bench.Open(t, nil, "")
	s := bench.Scan(t, m)
	all := driver.ByID(s)
	for name, ask := range map[string]func(testing.TB){
		"taken settings":              func(t testing.TB) { bench.Refuses(t, map[string]string{"": "speed"}) },
		"another reason":              func(t testing.TB) { bench.Refuses(t, map[string]string{`{"speed": 1}`: "size"}) },
		"another figure":              func(t testing.TB) { bench.Measures(t, m, s, map[string]string{"acme_power good": "41 of 75 MEASURED"}) },
		"not measured":                func(t testing.TB) { bench.Measures(t, m, s, map[string]string{"acme_mem good": "1 MEASURED"}) },
		"too much measured":           func(t testing.TB) { bench.Measures(t, m, s, map[string]string{"acme_clock good": ""}) },
		"given away":                  func(t testing.TB) { drivertest.Judged(t, all["good"], "old") },
		"rejected":                    func(t testing.TB) { drivertest.Judged(t, all["bad"], "") },
		"rejected for another reason": func(t testing.TB) { drivertest.Judged(t, all["bad"], "hot") },
		"no device":                   func(t testing.TB) { drivertest.Judged(t, all["none"], "") },
	} {
		r := &recorder{TB: t}
		if ask(r); len(r.said) != 1 {
			t.Errorf("%s: %q", name, r.said)
		}
	}
}

// files is a simulated machine with only these files.
type files map[string]string

func (f files) Write(file, text string) error { f[file] = text; return nil }

func (f files) Remove(file string) error { delete(f, file); return nil }

func TestSpoil(t *testing.T) {
	tree := files{"a": "1", "b": "2"}
	drivertest.Spoil(t, tree, "a", "x")
	drivertest.Spoil(t, tree, "b", "")
	if got := strings.Join(slices.Collect(maps.Keys(tree)), " "); got != "a" || tree["a"] != "x" {
		t.Errorf("%v", tree)
	}
}
