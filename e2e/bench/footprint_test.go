package bench

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkIdleMemory adds up the memory of the server and its child processes without sessions.
// Each page that they share is counted once (PSS).
func BenchmarkIdleMemory(b *testing.B) {
	awaitRest(b)
	total := int64(0)
	for b.Loop() {
		total = 0
		for _, pid := range tree(b, platform.Pid()) {
			total += pss(b, pid)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(total)/1024, "MiB")
}

// awaitRest waits until no process has started or ended for half a minute. Idle connections to
// PostgreSQL, each of which is a process, are closed within that time.
func awaitRest(b *testing.B) {
	const rest, most = 30 * time.Second, 4 * time.Minute
	begun := time.Now()
	last, since := tree(b, platform.Pid()), begun
	for time.Since(since) < rest {
		if time.Since(begun) > most {
			b.Logf("processes still start and end after %v", most)
			return
		}
		time.Sleep(time.Second)
		if now := tree(b, platform.Pid()); !slices.Equal(now, last) {
			last, since = now, time.Now()
		}
	}
}

// BenchmarkSecondStart measures the time from the start of the process with existing data until the
// server is ready.
func BenchmarkSecondStart(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		if err := platform.Interrupt(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := platform.Start(); err != nil {
			b.Fatal(err)
		}
	}
}

// tree returns a process and all its descendants.
func tree(b *testing.B, root int) []int {
	children := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		parent, _ := strconv.Atoi(fields[1])
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		children[parent] = append(children[parent], pid)
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	slices.Sort(all[1:])
	return all
}

// pss is a process's proportional memory in KiB.
func pss(b *testing.B, pid int) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "Pss:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	return 0
}
