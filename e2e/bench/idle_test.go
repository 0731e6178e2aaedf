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

	"github.com/berthhq/berth/e2e/cluster"
	"github.com/berthhq/berth/internal/client"
)

// BenchmarkIdleSessions is the processor time of sessions that do nothing: of the
// server, everything it started and the containers' shims, less what these take when
// there are no sessions.
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
			u.Until(s.ID, "running")
		}
		time.Sleep(5 * time.Second) // what their starts left is done
		with := busy(b)
		for _, s := range all {
			u.End(s.ID)
		}
		b.ReportMetric(before, "%-without")
		b.ReportMetric(100*(with-before)/sessions, "%-of-a-core/100-sessions")
	}
	b.ReportMetric(0, "ns/op")
}

// busy is how much of a core the platform takes, in percent, over some samples.
func busy(b *testing.B) float64 {
	const window = 30 * time.Second
	before, began := ticks(b), time.Now()
	time.Sleep(window)
	used := int64(0)
	for pid, now := range ticks(b) {
		used += now - before[pid]
	}
	const perSecond = 100 // USER_HZ of every Linux that Go runs on
	return float64(used) / perSecond / time.Since(began).Seconds() * 100
}

// ticks is the processor time of each of the platform's processes.
func ticks(b *testing.B) map[int]int64 {
	found := map[int]bool{}
	for _, pid := range tree(b, platform.Pid()) {
		found[pid] = true
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range lines { // shims are nobody's children
		if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte(platform.Data())) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			found[pid] = true
		}
	}
	out := map[int]int64{}
	for _, pid := range slices.Collect(maps.Keys(found)) {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue // it ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, i := range []int{11, 12} { // utime, stime
			n, _ := strconv.ParseInt(fields[i], 10, 64)
			out[pid] += n
		}
	}
	return out
}
