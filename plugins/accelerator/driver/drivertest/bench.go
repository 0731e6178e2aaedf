// Package drivertest calls a vendor's driver directly, without a plugin process, for the vendor's
// tests. Only tests import it.
package drivertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Bench is a driver whose machines have the type M.
type Bench[M driver.Machine] struct{ Driver driver.Driver }

// Open opens the machine below roots with settings, and fails the test if the driver refuses them.
// Outputs of programs are not cached, so that a test can change them.
func (b Bench[M]) Open(t testing.TB, roots *pb.Roots, config string) M {
	t.Helper()
	h := driver.NewHost(roots)
	h.Fresh = 0
	m, err := b.Driver.Open(h, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return m.(M)
}

// Refuses checks that the driver refuses settings. The keys are settings, and the values must be in
// the errors.
func (b Bench[M]) Refuses(t testing.TB, settings map[string]string) {
	t.Helper()
	for config, why := range settings {
		if _, err := b.Driver.Open(driver.NewHost(nil), []byte(config)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("settings %.80s: %v, want %q", config, err, why)
		}
	}
}

// Scan scans the machine and checks that the snapshot conforms to the contract.
func (b Bench[M]) Scan(t testing.TB, m M) *pb.DeviceSnapshot {
	t.Helper()
	s, err := m.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Revision = 1
	if err := accelerator.Validate(b.Driver.Describe(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Devices returns the devices of Scan by id.
func (b Bench[M]) Devices(t testing.TB, m M) map[string]*pb.Device {
	t.Helper()
	return driver.ByID(b.Scan(t, m))
}

// Pick returns devices of a snapshot in the order of the ids.
func Pick(t testing.TB, s *pb.DeviceSnapshot, ids ...string) []*pb.Device {
	t.Helper()
	all := driver.ByID(s)
	var out []*pb.Device
	for _, id := range ids {
		if all[id] == nil {
			t.Fatalf("no device %s in %v", id, s)
		}
		out = append(out, all[id])
	}
	return out
}

// Measures samples the machine, which must be a driver.Sampler, and compares the metrics: a key is
// "metric device", a value "1.5 MEASURED", or "1.5 of 8 MEASURED" if the capacity is known, or ""
// for a metric that must not exist.
func (b Bench[M]) Measures(t testing.TB, m M, s *pb.DeviceSnapshot, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, x := range any(m).(driver.Sampler).Sample(t.Context(), s) {
		if err := accelerator.ValidateMetric(b.Driver.Describe().GetKey(), x); err != nil {
			t.Error(err)
		}
		got[x.GetName()+" "+x.GetDeviceId()] = figure(x)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

func figure(x *pb.Metric) string {
	of := ""
	if x.Capacity != nil {
		of = fmt.Sprintf("of %v ", x.GetCapacity())
	}
	return fmt.Sprintf("%v %s%v", x.GetValue(), of, x.GetQuality())
}
