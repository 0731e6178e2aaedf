// Package condition periodically checks the machine of an agent: free space and inodes of the disks
// with its state, available memory, and whether the container runtime responds. While a condition
// is true, the manager places no new sessions on the agent. Only package agent imports it.
package condition

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/report"
)

// Limits are the thresholds below which a condition becomes true; zero selects the default.
type Limits struct {
	DiskPercent  float64 // free space of a disk, percent of its size
	DiskBytes    int64   // free space of a disk, but at most a tenth of its size
	InodePercent float64 // free inodes of a disk, percent of all
	MemoryBytes  int64   // available memory
}

// Defaults are the limits of an agent without configured ones.
var Defaults = Limits{DiskPercent: 5, DiskBytes: 1 << 30, InodePercent: 5, MemoryBytes: 256 << 20}

const (
	// every is the period of the checks: if a disk fills at 1 GiB/s, it is noticed before another 1
	// GiB is written.
	every = time.Second
	// slack prevents flapping near the threshold: a condition ends at 1.25 times the threshold.
	slack = 1.25
	// confirmations is the number of consecutive checks of the runtime that must agree before its
	// condition changes. containerd takes about 2 s to restart.
	confirmations = 3
	// runtimeTimeout is far above the few milliseconds of a healthy runtime.
	runtimeTimeout = 5 * time.Second
	// remember is how long disk pressure stays true after a start that failed for lack of space.
	// The disk may look free again because the failed start removed its own files.
	remember = 30 * time.Second
)

// Disk is the file system that contains a directory.
type Disk struct{ Name, Dir string } // the name is shown to people

// Config of a Monitor.
type Config struct {
	Disks   []Disk
	Limits  Limits
	Runtime func(context.Context) error // calls the container runtime; nil skips the check
	// OnChange is called after the status of a condition has changed.
	OnChange func()
	Logger   *slog.Logger
}

// Monitor checks the machine and stores the latest results.
type Monitor struct {
	cfg Config

	mu      sync.Mutex
	list    []*agentpb.Condition // replaced as a whole, never modified
	full    time.Time            // when a start last failed for lack of space
	streak  int                  // consecutive checks of the runtime that contradict its condition
	reading sync.Mutex           // serializes checks
}

// New returns a Monitor without results. Check or Run creates them.
func New(cfg Config) *Monitor {
	d := Defaults
	l := &cfg.Limits
	l.DiskPercent, l.InodePercent = orFloat(l.DiskPercent, d.DiskPercent), orFloat(l.InodePercent, d.InodePercent)
	if l.DiskBytes == 0 {
		l.DiskBytes = d.DiskBytes
	}
	if l.MemoryBytes == 0 {
		l.MemoryBytes = d.MemoryBytes
	}
	if cfg.OnChange == nil {
		cfg.OnChange = func() {}
	}
	return &Monitor{cfg: cfg}
}

func orFloat(x, otherwise float64) float64 {
	if x == 0 {
		return otherwise
	}
	return x
}

// Run checks until the context ends.
func (m *Monitor) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		m.Check(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// List returns the latest result of every check.
func (m *Monitor) List() []*agentpb.Condition {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list
}

// Holding returns the conditions that are true as one clause, or "".
func (m *Monitor) Holding() string {
	var list []report.Condition
	for _, c := range m.List() {
		list = append(list, report.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason})
	}
	return report.Holding(list)
}

// Blame reports whether err was caused by a condition of the machine, and by which. After a start
// that found no space, disk pressure stays true for a while even if the disk looks free again.
func (m *Monitor) Blame(ctx context.Context, err error) (why string, yes bool) {
	if NoSpace(err) {
		m.mu.Lock()
		m.full = time.Now()
		m.mu.Unlock()
	}
	if !NoSpace(err) && (errdefs.IsInvalidArgument(err) || errdefs.IsPermissionDenied(err) || errdefs.IsNotFound(err) || errdefs.IsFailedPrecondition(err)) {
		return "", false // the error was caused by the request
	}
	m.Check(ctx)
	why = m.Holding()
	return why, why != ""
}

// NoSpace reports whether an error means that a disk is full. Errors of containerd and runc have
// only text.
func NoSpace(err error) bool {
	if err == nil {
		return false
	}
	return errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), unix.ENOSPC.Error())
}

// Check runs all checks once.
func (m *Monitor) Check(ctx context.Context) {
	m.reading.Lock()
	defer m.reading.Unlock()
	before := map[string]bool{}
	for _, c := range m.List() {
		before[c.Type] = c.Status
	}
	list := append(m.disks(before), m.memory(before[report.MemoryPressure]))
	if m.cfg.Runtime != nil {
		list = append(list, m.runtime(ctx, before[report.RuntimeUnavailable]))
	}
	if ctx.Err() != nil {
		return // cancelled: the runtime's missing response means nothing
	}
	changed := false
	for _, c := range list {
		if c.Status != before[c.Type] {
			changed = true
			m.cfg.Logger.Warn("condition of the machine changed", "condition", c.Type, "status", c.Status, "reason", c.Reason)
		}
	}
	m.mu.Lock()
	m.list = list
	m.mu.Unlock()
	if changed {
		m.cfg.OnChange()
	}
}

// runtime calls the container runtime. A single response or failure does not change the condition.
func (m *Monitor) runtime(ctx context.Context, before bool) *agentpb.Condition {
	ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	c := &agentpb.Condition{Type: report.RuntimeUnavailable, Status: before, Reason: "it answers"}
	err := m.cfg.Runtime(ctx)
	if err != nil {
		c.Reason = err.Error()
	}
	if (err != nil) == before {
		m.streak = 0
		return c
	}
	if m.streak++; m.streak >= confirmations {
		m.streak, c.Status = 0, !before
	}
	return c
}
