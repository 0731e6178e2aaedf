package containerd

import (
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/runtime"
)

func TestLimitsKeepToProcessors(t *testing.T) {
	var free, kept specs.LinuxResources
	limits(&free, runtime.Resources{MilliCPU: 500, Memory: 1 << 20})
	limits(&kept, runtime.Resources{MilliCPU: 500, Memory: 1 << 20, CPUs: "2-3,6-7", Mems: "1"})
	if free.CPU.Cpus != "" || free.CPU.Mems != "" {
		t.Errorf("kept to %q and %q without need", free.CPU.Cpus, free.CPU.Mems)
	}
	if kept.CPU.Cpus != "2-3,6-7" || kept.CPU.Mems != "1" || *kept.CPU.Quota != 50_000 {
		t.Errorf("%+v", kept.CPU)
	}
}
