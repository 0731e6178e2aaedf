package bench

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/agent/runtime/containerd/daemon"
	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// BenchmarkIdleSessions measures the processor time of idle sessions: of the server, of everything
// that it started and of the containers' shims, minus the processor time without sessions.
func BenchmarkIdleSessions(b *testing.B) {
	const sessions = 40
	u := platform.User(b)
	for b.Loop() {
		before := busy(b)
		var all []*client.Session
		for range sessions {
			in := cluster.Interactive()
			in.Slots = cluster.Slots("cpu", "0.02", "mem", "32m")
			all = append(all, u.Run(in))
		}
		for _, s := range all {
			u.Until(s.ID, "RUNNING")
		}
		time.Sleep(5 * time.Second) // wait until the work after the starts is done
		with := busy(b)
		for _, s := range all {
			u.End(s.ID)
		}
		b.ReportMetric(before, "%-without")
		b.ReportMetric(100*(with-before)/sessions, "%-of-a-core/100-sessions")
	}
	b.ReportMetric(0, "ns/op")
}

// busy returns the processor time of the platform in percent of a core, over several samples.
func busy(b *testing.B) float64 {
	const window = 30 * time.Second
	before, began := spent(b), time.Now()
	time.Sleep(window)
	used := time.Duration(0)
	for pid, now := range spent(b) {
		used += now - before[pid]
	}
	return used.Seconds() / time.Since(began).Seconds() * 100
}

// spent returns the processor time of each process of the platform, and of the ended processes that
// it started.
func spent(b *testing.B) map[int]time.Duration {
	const tick = time.Second / 100 // USER_HZ of every Linux platform that Go supports
	found := map[int]bool{}
	for _, pid := range tree(b, platform.Pid()) {
		found[pid] = true
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	socket := daemon.Config{Dir: filepath.Join(platform.Data(), "containerd")}.Address()
	for _, name := range lines { // shims are not child processes of the server
		if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte(socket)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			found[pid] = true
		}
	}
	out := map[int]time.Duration{}
	for _, pid := range slices.Collect(maps.Keys(found)) {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue // the process has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, i := range []int{11, 12, 13, 14} { // utime, stime, and both of children that ended
			n, _ := strconv.ParseInt(fields[i], 10, 64)
			out[pid] += time.Duration(n) * tick
		}
	}
	return out
}
