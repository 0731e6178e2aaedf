package condition

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// amount is the free amount of a resource and its threshold.
type amount struct {
	free, floor float64
	text        string
}

// below reports whether the condition is true, given whether it was true before.
func (a amount) below(before bool) bool {
	if before {
		return a.free < a.floor*slack
	}
	return a.free < a.floor
}

// share returns the free amount relative to its threshold.
func (a amount) share() float64 {
	if a.floor == 0 {
		return 1
	}
	return a.free / a.floor
}

// disks checks space and inodes. Of several disks, it returns the one that is nearest to its
// threshold.
func (m *Monitor) disks(before map[string]bool) []*agentpb.Condition {
	space := &agentpb.Condition{Type: report.DiskPressure}
	inodes := &agentpb.Condition{Type: report.InodePressure}
	var spaceLeast, inodeLeast *amount
	seen := map[uint64]bool{}
	for _, disk := range m.cfg.Disks {
		var st unix.Stat_t
		var fs unix.Statfs_t
		err := unix.Stat(disk.Dir, &st)
		if err == nil && seen[st.Dev] {
			continue
		}
		if err == nil {
			err = unix.Statfs(disk.Dir, &fs)
		}
		if err != nil {
			space.Status, space.Reason = true, fmt.Sprintf("the %s cannot be read: %v", disk.Name, err)
			return []*agentpb.Condition{space, inodes}
		}
		seen[st.Dev] = true
		if a := m.space(disk.Name, fs); spaceLeast == nil || a.share() < spaceLeast.share() {
			spaceLeast = &a
		}
		if fs.Files == 0 { // the file system allocates inodes on demand
			continue
		}
		a := amount{free: float64(fs.Ffree), floor: float64(fs.Files) * m.cfg.Limits.InodePercent / 100}
		a.text = fmt.Sprintf("%d of %d inodes free on the %s", fs.Ffree, fs.Files, disk.Name)
		if inodeLeast == nil || a.share() < inodeLeast.share() {
			inodeLeast = &a
		}
	}
	m.judge(space, spaceLeast, before)
	m.judge(inodes, inodeLeast, before)
	if at := m.lastFull(); !space.Status && time.Since(at) < remember {
		space.Status, space.Reason = true, "a start found no space, "+space.Reason
	}
	return []*agentpb.Condition{space, inodes}
}

func (m *Monitor) judge(c *agentpb.Condition, a *amount, before map[string]bool) {
	if a != nil {
		c.Status, c.Reason = a.below(before[c.Type]), a.text
	}
}

func (m *Monitor) lastFull() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.full
}

func (m *Monitor) space(name string, fs unix.Statfs_t) amount {
	size, free := float64(fs.Blocks)*float64(fs.Bsize), float64(fs.Bavail)*float64(fs.Bsize)
	floor := max(size*m.cfg.Limits.DiskPercent/100, min(float64(m.cfg.Limits.DiskBytes), size/10))
	return amount{free: free, floor: floor, text: fmt.Sprintf("%s of %s free on the %s", people(free), people(size), name)}
}

func people(bytes float64) string { return resource.ForPeople(resource.Mem, int64(bytes)) }

// memory checks the memory that the kernel reports as available without swapping.
func (m *Monitor) memory(before bool) *agentpb.Condition {
	c := &agentpb.Condition{Type: report.MemoryPressure}
	available, ok := available()
	if !ok {
		c.Reason = "/proc/meminfo has no MemAvailable"
		return c
	}
	a := amount{free: float64(available), floor: float64(m.cfg.Limits.MemoryBytes)}
	c.Status, c.Reason = a.below(before), people(float64(available))+" available"
	return c
}

func available() (int64, bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemAvailable:" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}
