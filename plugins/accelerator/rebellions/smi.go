package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// report is the JSON output of rbln-smi. The types of values differ between versions of the SDK.
type report struct {
	Driver   driver.Loose `json:"KMD_version"`
	NPUs     []npu        `json:"devices"`
	Contexts []contextOf  `json:"contexts"`
}

type npu struct {
	Group  driver.Loose `json:"group_id"`
	Index  driver.Loose `json:"npu"` // changes with the groups
	Name   driver.Loose `json:"name"`
	Card   driver.Loose `json:"sid"`
	UUID   driver.Loose `json:"uuid"`
	Node   driver.Loose `json:"device"` // rbln0
	Status driver.Loose `json:"status"`
	FW     driver.Loose `json:"fw_ver"`
	PCI    struct {
		Bus   driver.Loose `json:"bus_id"`
		NUMA  driver.Loose `json:"numa_node"`
		Speed driver.Loose `json:"link_speed"`
		Width driver.Loose `json:"link_width"`
	} `json:"pci"`
	Temperature driver.Loose `json:"temperature"`
	Power       driver.Loose `json:"card_power"`
	State       driver.Loose `json:"pstate"`
	Memory      struct {
		Used  driver.Loose `json:"used"`
		Total driver.Loose `json:"total"`
	} `json:"memory"`
	Util driver.Loose `json:"util"`
}

// contextOf is the usage of an NPU by a process.
type contextOf struct {
	NPU    driver.Loose `json:"npu"`
	PID    driver.Loose `json:"pid"`
	Memory driver.Loose `json:"memory"`
	Alloc  driver.Loose `json:"memalloc"`
}

// program returns the current or the earlier name of the vendor's program.
func (m *machine) program() string {
	if _, err := m.Find("rbln-smi"); err != nil {
		if _, err := m.Find("rbln-stat"); err == nil {
			return "rbln-stat"
		}
	}
	return "rbln-smi"
}

const (
	// askTimeout leaves time for a response to the plugin's caller when the program hangs.
	askTimeout = 4 * time.Second
	// groupTimeout is the time for the firmware to regroup; Prepare has a minute.
	groupTimeout = 20 * time.Second
)

// ask returns a report that may be shared with other callers, for reading.
func (m *machine) ask(ctx context.Context) (*report, error) {
	return m.report(ctx, m.AskJSON, "-j")
}

// groups returns a current report with the groups, for changing them.
func (m *machine) groups(ctx context.Context) (*report, error) {
	return m.report(ctx, m.RunJSON, "-g", "-j")
}

// report returns the NPUs sorted by address, because the program's order changes with the groups.
func (m *machine) report(ctx context.Context, run func(context.Context, any, string, ...string) error, args ...string) (*report, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r := &report{}
	if err := run(ctx, r, m.program(), args...); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.NPUs, func(a, b npu) int { return cmp.Compare(a.PCI.Bus, b.PCI.Bus) })
	return r, nil
}

// regroup creates or destroys groups.
func (m *machine) regroup(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	_, err := m.Run(ctx, m.program(), append([]string{"group"}, args...)...)
	return err
}

// at returns the NPU at a PCI address.
func (r *report) at(bus string) *npu {
	for i := range r.NPUs {
		if string(r.NPUs[i].PCI.Bus) == bus {
			return &r.NPUs[i]
		}
	}
	return nil
}

// group returns the group of an NPU; "0" is the default group.
func (n *npu) group() string {
	if n.Group == "" {
		return "0"
	}
	return string(n.Group)
}
