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
	Driver   driver.Scalar `json:"KMD_version"`
	NPUs     []npu         `json:"devices"`
	Contexts []contextOf   `json:"contexts"`
}

type npu struct {
	Group  driver.Scalar `json:"group_id"`
	Index  driver.Scalar `json:"npu"` // changes with the groups
	Name   driver.Scalar `json:"name"`
	Card   driver.Scalar `json:"sid"`
	UUID   driver.Scalar `json:"uuid"`
	Node   driver.Scalar `json:"device"` // rbln0
	Status driver.Scalar `json:"status"`
	FW     driver.Scalar `json:"fw_ver"`
	PCI    struct {
		Bus   driver.Scalar `json:"bus_id"`
		NUMA  driver.Scalar `json:"numa_node"`
		Speed driver.Scalar `json:"link_speed"`
		Width driver.Scalar `json:"link_width"`
	} `json:"pci"`
	Temperature driver.Scalar `json:"temperature"`
	Power       driver.Scalar `json:"card_power"`
	State       driver.Scalar `json:"pstate"`
	Memory      struct {
		Used  driver.Scalar `json:"used"`
		Total driver.Scalar `json:"total"`
	} `json:"memory"`
	Util driver.Scalar `json:"util"`
}

// contextOf is the usage of an NPU by a process.
type contextOf struct {
	NPU    driver.Scalar `json:"npu"`
	PID    driver.Scalar `json:"pid"`
	Memory driver.Scalar `json:"memory"`
	Alloc  driver.Scalar `json:"memalloc"`
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
