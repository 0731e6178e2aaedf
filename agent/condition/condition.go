// Package condition checks the machine of an agent again and again: free space
// and inodes of the disks with its state, available memory, and whether the
// container runtime answers. While a condition holds, the manager places nothing
// new on the agent. Only package agent imports it.
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

// Limits are the floors below which a condition holds; zero takes the default.
type Limits struct {
	DiskPercent  float64 // free space of a disk, of its size
	DiskBytes    int64   // free space of a disk, but at most a tenth of its size
	InodePercent float64 // free inodes of a disk, of all
	MemoryBytes  int64   // available memory
}

// Defaults are the limits of an agent that is given none.
var Defaults = Limits{DiskPercent: 5, DiskBytes: 1 << 30, InodePercent: 5, MemoryBytes: 256 << 20}

const (
	// every is the period of the checks: a disk that fills with 1 GiB/s is noticed
	// before 1 GiB more is written.
	every = time.Second
	// slack keeps a value that moves about its floor from opening and closing the
	// agent: a condition that holds ends at 1.25 times the floor.
	slack = 1.25
	// confirmations is how many checks of the runtime in a row must agree before its
	// condition changes: containerd restarts in some 2 s.
	confirmations = 3
	// runtimeTimeout is far beyond the milliseconds of a runtime that works.
	runtimeTimeout = 5 * time.Second
	// remember keeps a start that failed for want of space: the disk may look free
	// again because what had filled it was part of the failed start.
	remember = 30 * time.Second
)

// Disk is what a directory lies on.
type Disk struct{ Name, Dir string } // the name is for people

// Config of a Monitor.
type Config struct {
	Disks   []Disk
	Limits  Limits
	Runtime func(context.Context) error // asks the container runtime for an answer; nil: not checked
	// OnChange is called when the status of a condition has changed.
	OnChange func()
	Logger   *slog.Logger
}

// Monitor keeps the latest results.
type Monitor struct {
	cfg Config

	mu      sync.Mutex
	list    []*agentpb.Condition // replaced, never changed
	full    time.Time            // when a start last failed for want of space
	streak  int                  // checks of the runtime that disagree with its condition
	reading sync.Mutex           // one check at a time
}

// New returns a Monitor without results; Check or Run gets them.
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

// Holding returns the conditions that hold as one clause, or "".
func (m *Monitor) Holding() string {
	var list []report.Condition
	for _, c := range m.List() {
		list = append(list, report.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason})
	}
	return report.Holding(list)
}

// Blame reports whether a start that failed with err failed for a condition of the
// machine, and which. A start that found no space closes the agent for a while even
// where the disk looks free again.
func (m *Monitor) Blame(ctx context.Context, err error) (why string, yes bool) {
	if NoSpace(err) {
		m.mu.Lock()
		m.full = time.Now()
		m.mu.Unlock()
	}
	if !NoSpace(err) && (errdefs.IsInvalidArgument(err) || errdefs.IsPermissionDenied(err) || errdefs.IsNotFound(err) || errdefs.IsFailedPrecondition(err)) {
		return "", false // the request's
	}
	m.Check(ctx)
	why = m.Holding()
	return why, why != ""
}

// NoSpace reports whether an error says that a disk is full. Errors of containerd
// and runc arrive as text.
func NoSpace(err error) bool {
	if err == nil {
		return false
	}
	return errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), unix.ENOSPC.Error())
}

// Check looks at everything once.
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
		return // what was asked last was not answered for that
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

// runtime asks the container runtime. One answer, or one that is missing, is not
// enough to change the condition.
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
