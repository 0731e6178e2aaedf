package driver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

func TestSettingsNameTheField(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want string // "" = accepted
	}{
		"a path":        {driver.PathSetting("runtime", "/opt/acme"), ""},
		"longest path":  {driver.PathSetting("runtime", "/"+strings.Repeat("x", 255)), ""},
		"path too long": {driver.PathSetting("runtime", "/"+strings.Repeat("x", 256)), "runtime: "},
		"relative":      {driver.PathSetting("runtime", "opt"), `runtime: "opt"`},
		"no path":       {driver.PathSetting("runtime", ""), `runtime: ""`},
		"elsewhere":     {driver.PathSetting("runtime", "/opt/../etc"), `"/opt/../etc"`},
		"everything":    {driver.PathSetting("runtime", "/"), `runtime: "/"`},
		"device ids":    {driver.DeviceIDsSetting("ids", []string{"505c", "0001"}), ""},
		"none":          {driver.DeviceIDsSetting("ids", nil), ""},
		"upper case":    {driver.DeviceIDsSetting("ids", []string{"505c", "505C"}), "ids[1]: \"505C\""},
		"five digits":   {driver.DeviceIDsSetting("ids", []string{"505c0"}), "ids[0]"},
		"too many ids":  {driver.DeviceIDsSetting("ids", make([]string, 65)), "ids: 65 are more than 64"},
	} {
		if got := row.err; (got == nil) != (row.want == "") || got != nil && !strings.Contains(got.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, got, row.want)
		}
	}
}

func TestDirIsTheAllocationsOwn(t *testing.T) {
	work := filepath.Join(t.TempDir(), "work")
	r := &driver.Request{PrepareRequest: &pb.PrepareRequest{WorkDir: work}}
	for range 2 { // a request can be repeated
		dir, err := r.Dir("logs")
		if err != nil || dir != filepath.Join(work, "logs") {
			t.Fatalf("%q, %v", dir, err)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("%v, %v", info, err)
		}
	}
	r.WorkDir = "work"
	if _, err := r.Dir(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "work_dir") {
		t.Errorf("relative: %v", err)
	}
}

func TestQuantity(t *testing.T) {
	for text, want := range map[driver.Scalar]float64{
		"12": 12, "37C": 37, "41.5 °C": 41.5, "19.5W": 19.5, "500mW": .5, "15.5GiB": 15.5 * (1 << 30), "2.4 GB": 2.4e9, " 3 MiB ": 3 << 20, "9%": 9,
	} {
		if got, err := driver.Quantity(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []driver.Scalar{"", "N/A", "-1", "NaN", "1e9", "12 parsecs", "0x10", "1 2"} {
		if got, err := driver.Quantity(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestWhole(t *testing.T) {
	s := &pb.DeviceSnapshot{Devices: []*pb.Device{card("a"), card("b")}}
	set := &pb.WorkloadSet{Workloads: []*pb.Workload{
		{AllocationId: "1", Allocations: []*pb.Allocation{{DeviceId: "b"}, {DeviceId: "gone"}}},
		{AllocationId: "2"},
	}}
	got := driver.Whole(s, set, func(d *pb.Device) []*pb.Metric {
		return []*pb.Metric{
			driver.Gauge("acme_util", d.GetId(), "percent", 5, 100, nil),
			driver.Derived(driver.Gauge("acme_power", d.GetId(), "watt", 5, 0, nil)),
		}
	})
	if len(got) != 2 || len(got[0].GetMetrics()) != 2 || len(got[1].GetMetrics()) != 0 || got[0].GetMetrics()[0].GetDeviceId() != "b" {
		t.Fatalf("%v", got)
	}
	if m := got[0].GetMetrics(); m[0].GetQuality() != pb.Metric_ATTRIBUTED || m[1].GetQuality() != pb.Metric_ESTIMATED {
		t.Errorf("%v", m)
	}
}
