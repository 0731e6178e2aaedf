package bench

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkIdleMemory adds up the memory of the server and its children, each
// page shared among them counted once (PSS), when nothing runs.
func BenchmarkIdleMemory(b *testing.B) {
	time.Sleep(3 * time.Second) // what start-up left is collected
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

// BenchmarkSecondStart is the time from the start of the process on existing
// data until it answers as ready.
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

// tree is a process and all below it.
func tree(b *testing.B, root int) []int {
	children := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
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
