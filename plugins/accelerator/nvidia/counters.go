package main

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// counters returns a whole GPU's memory errors since the driver was loaded, its clock rates, and
// its NVLink traffic.
func (m *machine) counters(g *gpu) []*pb.Metric {
	out := []*pb.Metric{
		g.errors("ecc_uncorrected", nvml.MEMORY_ERROR_TYPE_UNCORRECTED),
		g.errors("ecc_corrected", nvml.MEMORY_ERROR_TYPE_CORRECTED),
		g.clock("clock", nvml.CLOCK_SM), g.clock("memory_clock", nvml.CLOCK_MEM),
	}
	return append(out, m.traffic(g)...)
}

func (g *gpu) errors(name string, kind nvml.MemoryErrorType) *pb.Metric {
	n, ret := g.handle.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
	out := gauge(name, g.id, "count", float64(n), 0, ret)
	out.Kind = pb.Metric_COUNTER
	return out
}

func (g *gpu) clock(name string, kind nvml.ClockType) *pb.Metric {
	n, ret := g.handle.GetClockInfo(kind)
	return gauge(name, g.id, "mhz", float64(n), 0, ret)
}

// linkBytes has NVML's counters of all NVLinks of a GPU and the time of the read.
type linkBytes struct {
	sent, received uint64
	at             time.Time
}

// allLinks is the scope of a field that covers all NVLinks.
const allLinks = math.MaxUint32

// traffic returns the rate of a GPU's NVLink traffic since the previous read, or nothing for a GPU
// without NVLink.
func (m *machine) traffic(g *gpu) []*pb.Metric {
	fields := []nvml.FieldValue{
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: allLinks},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ScopeId: allLinks},
	}
	ret := g.handle.GetFieldValues(fields)
	for _, f := range fields {
		if ret == nvml.SUCCESS {
			ret = nvml.Return(f.NvmlReturn)
		}
	}
	if ret != nvml.SUCCESS {
		return nil
	}
	// NVML counts KiB.
	now := linkBytes{binary.NativeEndian.Uint64(fields[0].Value[:]) << 10, binary.NativeEndian.Uint64(fields[1].Value[:]) << 10, time.Now()}
	m.mu.Lock()
	if m.wires == nil {
		m.wires = map[string]linkBytes{}
	}
	was := m.wires[g.id]
	m.wires[g.id] = now
	m.mu.Unlock()
	took := now.at.Sub(was.at).Seconds()
	if was.at.IsZero() || took <= 0 || now.sent < was.sent || now.received < was.received { // a rate requires two reads
		ret = nvml.ERROR_NOT_READY
	}
	rate := func(name string, n uint64) *pb.Metric {
		out := gauge(name, g.id, "bytes", float64(n)/took, 0, ret)
		out.Kind = pb.Metric_RATE
		return out
	}
	return []*pb.Metric{rate("nvlink_tx", now.sent-was.sent), rate("nvlink_rx", now.received-was.received)}
}

// fabric checks the manager of a machine's NVSwitches, which CUDA requires on all of its GPUs. It
// returns nil for a machine without switches.
func (m *machine) fabric() *pb.Check {
	switches := 0
	for _, name := range driver.Names(m.Dev()) {
		if n, ok := strings.CutPrefix(name, "nvidia-nvswitch"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
			switches++
		}
	}
	if switches == 0 {
		return nil
	}
	const name = "nv-fabricmanage" // the kernel truncates nv-fabricmanager to 15 characters
	running := false
	for _, pid := range driver.Names(m.Proc()) {
		if strings.Trim(pid, "0123456789") == "" && driver.Text(m.Proc(pid, "comm")) == name {
			running = true
			break
		}
	}
	return driver.Checked("fabric-manager", running, "nv-fabricmanager runs",
		"this machine has NVSwitches and nv-fabricmanager does not run: CUDA cannot start on its GPUs")
}
