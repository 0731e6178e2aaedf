package clustertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/manager/managertest"
)

// Drift is one difference that an audit of the occupancy found.
type Drift struct {
	Kind, Agent, Device, Detail string
	Kernel, Session             *uuid.UUID
	Repaired                    bool
	Owner, Project, Next        string
}

// Occupancy is the result of an audit of the occupancy.
type Occupancy struct {
	Agents, Kernels, Allocations int
	Silent                       []string
	Drift                        []Drift
}

// Kinds returns the number of differences by kind, as text.
func (o Occupancy) Kinds() string {
	count := map[string]int{}
	for _, d := range o.Drift {
		count[d.Kind]++
	}
	return strings.TrimPrefix(fmt.Sprint(count), "map")
}

// OccupancyFields selects an Occupancy in a document.
const OccupancyFields = `{ agents silent kernels allocations drift { kind agent device kernel session detail repaired owner project next } }`

// AuditOccupancy has the leader compare its records with the machines and repair what is safe to repair.
func (c *Cluster) AuditOccupancy(t *testing.T) Occupancy {
	t.Helper()
	var got struct{ AuditOccupancy struct{ Audit Occupancy } }
	c.Manager.As(t, c.Superadmin).Must(t, `mutation { auditOccupancy { audit `+OccupancyFields+` } }`, nil, &got)
	return got.AuditOccupancy.Audit
}

// WaitForNoDrift waits until an audit finds no difference, and checks the metric.
func (c *Cluster) WaitForNoDrift(t *testing.T) {
	t.Helper()
	var last Occupancy
	managertest.Eventually(t, "nothing differs", func() bool {
		last = c.AuditOccupancy(t)
		return len(last.Drift) == 0
	})
	for kind, n := range c.DriftMetric(t) {
		if n != "0" {
			t.Errorf("the metric is %s for %s", n, kind)
		}
	}
}

// DriftMetric returns the values of berth_occupancy_drift by kind.
func (c *Cluster) DriftMetric(t *testing.T) map[string]string {
	t.Helper()
	out := c.Metric(t, "berth_occupancy_drift")
	if len(out) != 6 {
		t.Fatalf("the metric has %v", out)
	}
	return out
}

// Metric returns the values of a metric of the manager by kind.
func (c *Cluster) Metric(t *testing.T, metric string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, line := range strings.Split(c.Manager.Scrape(t), "\n") {
		if kind, ok := strings.CutPrefix(line, metric+`{kind="`); ok {
			name, n, _ := strings.Cut(kind, `"} `)
			out[name] = n
		}
	}
	return out
}
