package main

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

// The driver and the library have different versions, as on a machine that was upgraded and not
// rebooted.
func TestADriverThatCannotBeUsedSaysWhy(t *testing.T) {
	m := newHost(t, h100)
	p := m.start(t, "")
	m.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNINITIALIZED }
	if _, err := p.Scan(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "the driver no longer answers: ") {
		t.Errorf("a driver that does not answer: %v", err)
	}
	m.InitFunc = func() nvml.Return { return nvml.ERROR_LIB_RM_VERSION_MISMATCH }
	if _, err := p.Scan(t.Context()); err == nil || err.Error() != "the driver cannot be used: initialise NVML: error 18" {
		t.Errorf("a driver of another version: %v", err)
	}
}

// Without the file that all GPUs share, no container can use a GPU.
func TestSharedDeviceFileIsMissing(t *testing.T) {
	m := newHost(t, h100, h100)
	p := m.start(t, "")
	file := filepath.Join(m.root, "dev/nvidia-uvm")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, d := range look(t, p).GetDevices() {
		if d.GetAllocatable() || d.GetHealth() != pb.Health_HEALTH_UNHEALTHY || !strings.HasPrefix(d.GetHealthMessage(), "/dev/nvidia-uvm: ") {
			t.Errorf("%v", d)
		}
	}
	m.nodes(t, "nvidia-uvm")
	for _, d := range look(t, p).GetDevices() {
		if !d.GetAllocatable() || d.GetHealth() != pb.Health_HEALTH_HEALTHY {
			t.Errorf("with the file: %v", d)
		}
	}
}

func TestCounters(t *testing.T) {
	m := newHost(t, h100)
	p := m.start(t, "")
	id := p.now.GetDevices()[0].GetId()
	drivertest.Bench[*machine]{Driver: p.vendor}.Measures(t, p.machine, p.now, map[string]string{
		"cuda_ecc_corrected " + id: "3 MEASURED", "cuda_ecc_uncorrected " + id: "0 MEASURED",
		"cuda_clock " + id: "1001 MEASURED", "cuda_memory_clock " + id: "1002 MEASURED",
		"cuda_nvlink_tx " + id: "", // it has no NVLink
	})
	kib := uint64(1000)
	m.gpu(0).GetFieldValuesFunc = func(f []nvml.FieldValue) nvml.Return {
		for i := range f {
			binary.NativeEndian.PutUint64(f[i].Value[:], kib*uint64(i+1))
		}
		return nvml.SUCCESS
	}
	rates := func() map[string]*pb.Metric {
		out := map[string]*pb.Metric{}
		for _, x := range p.Sample(t.Context(), p.now) {
			if x.GetKind() == pb.Metric_RATE {
				out[x.GetName()] = x
			}
		}
		return out
	}
	if got := rates()["cuda_nvlink_tx"]; got.GetQuality() != pb.Metric_UNAVAILABLE {
		t.Errorf("after one read: %v", got)
	}
	kib = 3000
	got := rates()
	tx, rx := got["cuda_nvlink_tx"], got["cuda_nvlink_rx"]
	if tx.GetValue() <= 0 || tx.GetQuality() != pb.Metric_MEASURED || math.Abs(rx.GetValue()/tx.GetValue()-2) > 1e-9 {
		t.Errorf("tx %v, rx %v", tx, rx)
	}
}

func TestFabricManager(t *testing.T) {
	m := newHost(t, h100)
	p := m.start(t, "")
	check := func() *pb.Check {
		for _, c := range p.Check(t.Context()) {
			if c.GetName() == "fabric-manager" {
				return c
			}
		}
		return nil
	}
	if c := check(); c != nil {
		t.Errorf("without switches: %v", c)
	}
	m.nodes(t, "nvidia-nvswitchctl", "nvidia-nvswitch0")
	if c := check(); c == nil || c.GetOk() {
		t.Errorf("it does not run: %v", c)
	}
	m.file(t, "proc/812/comm", "nv-fabricmanage\n")
	if c := check(); !c.GetOk() {
		t.Errorf("it runs: %v", c)
	}
}
