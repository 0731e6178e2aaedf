package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// cycles are counters of a processing element since it started: all cycles, and those with work.
type cycles struct{ all, busy uint64 }

// work has the counters of two consecutive scans. The ratio since the start would be a long-term
// average instead of the current utilization.
type work struct{ before, now cycles }

var fieldForm = regexp.MustCompile(`([A-Za-z_]+)(?:\s*[:=]\s*|\s+)(0[xX][0-9a-fA-F]+|[0-9a-fA-F]+)\b`)

// fields reads a file of named numbers and normalizes the names: dram_usage and DramUsage both
// become dramusage.
func fields(base int, elem ...string) (map[string]uint64, error) {
	text, err := driver.Read(elem...)
	if err != nil {
		return nil, err
	}
	out := map[string]uint64{}
	for _, found := range fieldForm.FindAllStringSubmatch(text, -1) {
		digits, base := found[2], base
		if strings.HasPrefix(strings.ToLower(digits), "0x") {
			digits, base = digits[2:], 16
		}
		if n, err := strconv.ParseUint(digits, base, 64); err == nil {
			out[strings.ToLower(strings.ReplaceAll(found[1], "_", ""))] = n
		}
	}
	return out, nil
}

// element returns the directory of a processing element of an RNGD.
func (m *machine) element(d *pb.Device, i int) string {
	return m.Sys("class/rngd_mgmt", fmt.Sprintf("rngd!npu%spe%d", d.GetAttributes()["number"], i))
}

// count records the cycles of a card's elements.
func (m *machine) count(d *pb.Device) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range elements {
		dir := m.element(d, i)
		f, err := fields(10, dir, "metrics")
		all, ok := f["cyclecount"]
		busy, works := f["taskcyclecount"]
		if err != nil || !ok || !works {
			delete(m.work, dir)
			continue
		}
		was, known := m.work[dir]
		if !known {
			was.now = cycles{all, busy}
		}
		m.work[dir] = work{before: was.now, now: cycles{all, busy}}
	}
}

var errUnknown = errors.New("not known")

// busy returns the utilization of a device's elements between two scans, in percent.
func (m *machine) busy(d *pb.Device) (float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, last := span(d)
	sum := 0.0
	for i := first; i <= last; i++ {
		w, ok := m.work[m.element(d, i)]
		if !ok || w.now.all <= w.before.all || w.now.busy < w.before.busy {
			return 0, errUnknown // scanned only once, stopped, or restarted
		}
		sum += min(1, float64(w.now.busy-w.before.busy)/float64(w.now.all-w.before.all))
	}
	return 100 * sum / float64(last-first+1), nil
}

// used returns the memory of a device's elements that programs have allocated.
func (m *machine) used(d *pb.Device) (float64, error) {
	first, last := span(d)
	sum := 0.0
	for i := first; i <= last; i++ {
		dir := m.element(d, i)
		f, err := fields(16, dir, "alloc_status")
		if err != nil {
			return 0, err
		}
		n, ok := f["dramusage"]
		if !ok && driver.Text(dir, "alloc_status") != "" { // empty while unused
			return 0, errUnknown
		}
		sum += float64(n)
	}
	return sum, nil
}
