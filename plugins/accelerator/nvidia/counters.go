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

// counters are a whole GPU's memory errors since the driver was loaded, its clocks, and
// what goes over its NVLinks.
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

// linkBytes are what NVML counted of a GPU's NVLinks, over all of them, when it was read.
type linkBytes struct {
	sent, received uint64
	at             time.Time
}

// allLinks is the scope of a field of all NVLinks together.
const allLinks = math.MaxUint32

// traffic is what went over a GPU's NVLinks in a second, since it was read last; nothing
// for a GPU without NVLink.
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
	if was.at.IsZero() || took <= 0 || now.sent < was.sent || now.received < was.received { // it takes two reads
		ret = nvml.ERROR_NOT_READY
	}
	rate := func(name string, n uint64) *pb.Metric {
		out := gauge(name, g.id, "bytes", float64(n)/took, 0, ret)
		out.Kind = pb.Metric_RATE
		return out
	}
	return []*pb.Metric{rate("nvlink_tx", now.sent-was.sent), rate("nvlink_rx", now.received-was.received)}
}

// fabric checks the manager of a machine's NVSwitches, without which CUDA does not
// start on any of its GPUs; nil on a machine without switches.
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
	const name = "nv-fabricmanage" // the kernel keeps 15 characters of nv-fabricmanager
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
