package main

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// start builds and launches the plugin as an agent would.
func start(t *testing.T, config string) (c *accelerator.Client, faults string) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "mock")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	faults = filepath.Join(dir, "faults")
	if err := os.Mkdir(faults, 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := accelerator.Launch(t.Context(), accelerator.Options{Path: binary}, &pb.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := c.Configure(t.Context(), &pb.ConfigureRequest{ConfigJson: []byte(config), Roots: &pb.Roots{State: dir}}); err != nil {
		t.Fatal(err)
	}
	return c, faults
}

func order(t *testing.T, faults, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(faults, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFaultFilesSteerARunningPlugin(t *testing.T) {
	c, faults := start(t, `{"devices": 2}`)
	ctx, cancel := context.WithTimeout(t.Context(), wait.Timeout)
	defer cancel()
	devices, err := c.WatchDevices(ctx, &pb.WatchDevicesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	health, err := c.WatchHealth(ctx, &pb.WatchHealthRequest{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want ...string) {
		t.Helper()
		s, err := devices.Recv()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range s.GetDevices() {
			got = append(got, d.GetId()+" "+d.GetHealth().String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
	reported := func(id string, want pb.Health) {
		t.Helper()
		e, err := health.Recv()
		if err != nil || e.GetDeviceId() != id || e.GetHealth() != want {
			t.Fatalf("event %v, %v; want %s of %s", e, err, want, id)
		}
	}
	expect("gpu-0 HEALTH_HEALTHY", "gpu-1 HEALTH_HEALTHY")

	order(t, faults, "unhealthy", "gpu-0 degraded fan is slow")
	expect("gpu-0 HEALTH_DEGRADED", "gpu-1 HEALTH_HEALTHY")
	reported("gpu-0", pb.Health_HEALTH_DEGRADED)

	began := time.Now()
	order(t, faults, "unplug", "1")
	expect("gpu-0 HEALTH_DEGRADED")
	reported("gpu-1", pb.Health_HEALTH_LOST)
	t.Logf("the unplugged device was seen after %v", time.Since(began))
	_, err = c.Prepare(ctx, &pb.PrepareRequest{AllocationId: "1", Allocations: []*pb.Allocation{{DeviceId: "gpu-1", Slot: whole, Amount: "1"}}})
	if status.Code(err) != codes.NotFound {
		t.Errorf("an unplugged device was prepared: %v", err)
	}

	order(t, faults, "lie", "negative")
	s, err := devices.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if err := accelerator.Validate(c.Description, s); err == nil {
		t.Error("the lie passed")
	}

	order(t, faults, "hang", "Preflight")
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := c.Preflight(short, &pb.PreflightRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a hanging call: %v", err)
	}
	if err := c.Ping(ctx); err != nil {
		t.Errorf("a call that was not to hang: %v", err)
	}

	order(t, faults, "crash", "")
	select {
	case <-c.Done():
	case <-time.After(wait.Timeout):
		t.Fatal("did not crash")
	}
	if _, err := os.Stat(filepath.Join(faults, "crash")); err == nil {
		t.Error("the order to crash once is still there")
	}
}

func TestPrepareTellsTheContainerItsPart(t *testing.T) {
	c, _ := start(t, `{"devices": 2, "memory_bytes": 17179869184, "device_nodes": true}`)
	ask := func(id string, a ...*pb.Allocation) (*pb.PrepareResponse, error) {
		return c.Prepare(t.Context(), &pb.PrepareRequest{AllocationId: id, Allocations: a})
	}
	half, err := ask("half", &pb.Allocation{DeviceId: "gpu-1", Slot: shares, Amount: "0.5"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"MOCK_VISIBLE_DEVICES": "gpu-1", "MOCK_SHARES": "gpu-1:0.5"}, half.GetEdits().GetEnv()); diff != "" {
		t.Error(diff)
	}
	if a := half.GetAttached()[0]; a.GetMemoryBytes() != 8<<30 || a.GetProcessingUnits() != 32 {
		t.Errorf("attached %v", a)
	}
	if n := half.GetEdits().GetDeviceNodes(); len(n) != 1 || n[0].GetPath() != "/dev/mock0" || n[0].GetMajor() != 1 || n[0].GetMinor() != 5 {
		t.Errorf("nodes %v", n)
	}
	mem, err := ask("mem", &pb.Allocation{DeviceId: "gpu-0", Slot: memory, Amount: "4294967296"})
	if err != nil {
		t.Fatal(err)
	}
	if a := mem.GetAttached()[0]; a.GetMemoryBytes() != 4<<30 || mem.GetEdits().GetEnv()["MOCK_SHARES"] != "gpu-0:0.25" {
		t.Errorf("attached %v, env %v", a, mem.GetEdits().GetEnv())
	}
	if _, err := ask("odd", &pb.Allocation{DeviceId: "gpu-0", Slot: shares, Amount: "0.333"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an amount between two steps: %v", err)
	}
}

func TestSameSeedSameLoad(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	differs := false
	for i := range 200 {
		now := at.Add(time.Duration(i) * time.Second)
		a := walk(&config{Seed: 1}, "gpu-0", now)
		if a < 0 || a > 1 || a != walk(&config{Seed: 1}, "gpu-0", now) {
			t.Fatalf("load is %v, then %v", a, walk(&config{Seed: 1}, "gpu-0", now))
		}
		differs = differs || a != walk(&config{Seed: 2}, "gpu-0", now) && a != walk(&config{Seed: 1}, "gpu-1", now)
		if step := a - walk(&config{Seed: 1}, "gpu-0", now.Add(time.Second)); step > 0.1 || step < -0.1 {
			t.Errorf("load jumps by %v in a second", step)
		}
	}
	if !differs {
		t.Error("seed and device do not matter")
	}
}

func TestBadConfig(t *testing.T) {
	for _, bad := range []string{
		`{`, `null x`, `{"devices": -1}`, `{"devices": 1000000}`, `{"model": ""}`, `{"memory_bytes": 1}`, `{"numa_nodes": -1}`,
		`{"links": "star"}`, `{"quantum": "0"}`, `{"quantum": "-0.1"}`, `{"faults": {"explode": ""}}`, `{"colour": "red"}`,
	} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestLoadIsAsAskedFor(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)
	for name, want := range map[string][2]float64{"idle": {0, 0}, "busy": {0.97, 0.97}, "wave": {1, 0}, "spikes": {0.9, 0.02}} {
		c, err := parse([]byte(`{"load": "` + name + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		m := &mock{cfg: c}
		if a, b := m.load("gpu-0", at), m.load("gpu-0", at.Add(5*time.Minute+30*time.Second)); math.Abs(a-want[0]) > 0.01 || math.Abs(b-want[1]) > 0.03 {
			t.Errorf("%s: %v and %v, want %v", name, a, b, want)
		}
	}
	if _, err := parse([]byte(`{"load": "heavy"}`)); err == nil || !strings.Contains(err.Error(), "busy, idle, spikes") {
		t.Errorf("heavy: %v", err)
	}
}
