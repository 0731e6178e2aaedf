package stats

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/agentpb"
)

// node measures the machine. Metrics that cannot be read are omitted.
func (c *Collector) node() []*agentpb.Metric {
	var out []*agentpb.Metric
	if busy, ok := cpuTime(); ok {
		out = append(out, &agentpb.Metric{Name: "cpu_used_ms", Value: float64(busy.Milliseconds()), Unit: "ms"})
		if util, ok := c.utilisation("", busy); ok {
			out = append(out, &agentpb.Metric{Name: "cpu_util", Value: util, Capacity: 100 * float64(runtime.NumCPU()), Unit: "percent"})
		}
	}
	if total, free, ok := memory(); ok {
		out = append(out, &agentpb.Metric{Name: "mem_used", Value: float64(total - free), Capacity: float64(total), Unit: "bytes"})
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(c.dir, &fs); err == nil {
		size := float64(fs.Blocks) * float64(fs.Bsize)
		out = append(out, &agentpb.Metric{Name: "disk_used", Value: size - float64(fs.Bfree)*float64(fs.Bsize), Capacity: size, Unit: "bytes"})
	}
	return append(out, c.devices.NodeMetrics()...)
}

// cpuTime returns the total non-idle time of all cores.
func cpuTime() (time.Duration, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, false
	}
	const user, nice, system, irq, softirq = 1, 2, 3, 6, 7
	var ticks int64
	for _, i := range []int{user, nice, system, irq, softirq} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, false
		}
		ticks += n
	}
	// USER_HZ is 100 on every Linux that Go supports.
	return time.Duration(ticks) * 10 * time.Millisecond, true
}

func memory() (total, available int64, ok bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "MemTotal:":
			total = n << 10
		case "MemAvailable:":
			available = n << 10
		}
	}
	return total, available, total > 0 && available > 0
}

// pids returns the processes of a cgroup, from whichever hierarchy contains it.
func pids(cgroup string) []int32 {
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids"} {
		text, err := os.ReadFile(filepath.Join(root, cgroup, "cgroup.procs"))
		if err != nil {
			continue
		}
		var out []int32
		for _, field := range strings.Fields(string(text)) {
			if n, err := strconv.ParseInt(field, 10, 32); err == nil {
				out = append(out, int32(n))
			}
		}
		return out
	}
	return nil
}
