package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
)

// row is the load of a session or an agent. A value that is not measured is nil.
type row struct {
	Name    string     `json:"name"`
	Owner   string     `json:"owner,omitempty"`
	Project string     `json:"project,omitempty"`
	Group   string     `json:"group,omitempty"`
	Agents  []string   `json:"agents,omitempty"`
	Status  string     `json:"status,omitempty"`
	CPU     *value     `json:"cpu"` // percent of a core
	Memory  *value     `json:"memory"`
	Devices *value     `json:"accelerators"` // mean percent of its accelerators
	Since   *time.Time `json:"startedAt,omitempty"`
	At      *time.Time `json:"sampledAt,omitempty"`
}

// value is a sum of samples and of their limits; a capacity of 0 is unknown.
type value struct {
	Value    float64 `json:"value"`
	Capacity float64 `json:"capacity,omitempty"`
	count    int
}

func (v *value) amount() float64 {
	if v == nil {
		return -1
	}
	return v.Value
}

// screen is one reading.
type screen struct {
	Rows           []row
	agents, owners bool
}

// orders are the sort keys: the largest first, except for names.
var orders = map[string]func(a, b row) int{
	"cpu":  func(a, b row) int { return cmp.Compare(b.CPU.amount(), a.CPU.amount()) },
	"mem":  func(a, b row) int { return cmp.Compare(b.Memory.amount(), a.Memory.amount()) },
	"acc":  func(a, b row) int { return cmp.Compare(b.Devices.amount(), a.Devices.amount()) },
	"name": func(row, row) int { return 0 },
}

func (s *screen) order(by string) {
	slices.SortStableFunc(s.Rows, func(a, b row) int {
		return cmp.Or(orders[by](a, b), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
	})
}

// add adds samples to a row.
func (r *row) add(metrics []client.Metric) {
	put := func(to **value, m client.Metric) {
		if *to == nil {
			*to = &value{}
		}
		(*to).Value += m.Value
		(*to).Capacity += m.Capacity
		(*to).count++
	}
	for _, m := range metrics {
		switch {
		case m.Quality == "UNAVAILABLE":
		case m.Name == "cpu_util" && m.DeviceID == "":
			put(&r.CPU, m)
		case m.Name == "mem_used" && m.DeviceID == "":
			put(&r.Memory, m)
		case m.DeviceID != "" && strings.HasSuffix(m.Name, "_util"):
			put(&r.Devices, m)
		}
	}
}

// mean turns the sum over accelerators into their mean.
func (r *row) mean() {
	if d := r.Devices; d != nil && d.count > 0 {
		d.Value, d.Capacity = d.Value/float64(d.count), 100
	}
}

func sessionScreen(list []client.SessionLoad, owners bool) screen {
	s := screen{Rows: []row{}, owners: owners}
	for _, x := range list {
		r := row{Name: x.Name, Since: x.StartedAt}
		if x.Owner != nil {
			r.Owner = x.Owner.Email
		}
		if x.Project != nil {
			r.Project = x.Project.Name
		}
		if x.ResourceGroup != nil {
			r.Group = x.ResourceGroup.Name
		}
		for _, k := range x.Kernels {
			r.add(k.Stats.Metrics)
			if k.Agent != nil && !slices.Contains(r.Agents, k.Agent.Name) {
				r.Agents = append(r.Agents, k.Agent.Name)
			}
			if k.Stats.At != nil && (r.At == nil || k.Stats.At.After(*r.At)) {
				r.At = k.Stats.At
			}
		}
		r.mean()
		s.Rows = append(s.Rows, r)
	}
	return s
}

func agentScreen(list []client.AgentLoad) screen {
	s := screen{Rows: []row{}, agents: true}
	for _, x := range list {
		r := row{Name: x.Name, Group: x.ResourceGroup.Name, Status: strings.ToLower(string(x.Status))}
		if !x.Schedulable {
			r.Status += ", cordoned"
		}
		r.add(x.Stats)
		r.mean()
		s.Rows = append(s.Rows, r)
	}
	return s
}

// table returns the rows as people read them.
func (s screen) table(now time.Time) *output.Table {
	if s.agents {
		t := output.NewTable("AGENT", "GROUP", "STATUS", "CPU", "MEMORY", "ACCELERATORS")
		for _, r := range s.Rows {
			t.Row(r.Name, r.Group, r.Status, r.cores(), r.memory(), r.devices())
		}
		return t
	}
	head := []string{"SESSION", "CPU", "MEMORY", "ACCELERATORS", "AGENT", "RUNS"}
	if s.owners {
		head = append(head, "OWNER", "PROJECT")
	}
	t := output.NewTable(head...).Spare("RUNS", "AGENT")
	for _, r := range s.Rows {
		runs := ""
		if r.Since != nil {
			runs = output.Age(now, *r.Since)
		}
		cells := []any{r.Name, r.cores(), r.memory(), r.devices(), strings.Join(r.Agents, ","), runs}
		if s.owners {
			cells = append(cells, r.Owner, r.Project)
		}
		t.Row(cells...)
	}
	return t
}

// cores shows the use of processors in cores, as slots are.
func (r row) cores() output.Cell {
	if r.CPU == nil {
		return unknown
	}
	text := fmt.Sprintf("%.2f", r.CPU.Value/100)
	if r.CPU.Capacity > 0 {
		text += fmt.Sprintf(" of %s", trimmed(r.CPU.Capacity/100))
	}
	return colored(text, r.CPU)
}

func (r row) memory() output.Cell {
	if r.Memory == nil {
		return unknown
	}
	text := output.Bytes(int64(r.Memory.Value))
	if r.Memory.Capacity > 0 {
		text += " of " + output.Bytes(int64(r.Memory.Capacity))
	}
	return colored(text, r.Memory)
}

func (r row) devices() output.Cell {
	if r.Devices == nil {
		return unknown
	}
	text := fmt.Sprintf("%.0f %%", r.Devices.Value)
	if r.Devices.count > 1 {
		text += fmt.Sprintf(" of %d", r.Devices.count)
	}
	return output.Cell{Text: text}
}

// unknown is a value without a sample, which is not 0.
var unknown = output.Cell{Text: "-", Color: output.Dim}

// nearly is the share of a limit from which on a value is marked.
const nearly = 0.9

func colored(text string, v *value) output.Cell {
	if v.Capacity > 0 && v.Value/v.Capacity >= nearly {
		return output.Cell{Text: text, Color: output.Yellow}
	}
	return output.Cell{Text: text}
}

func trimmed(n float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", n), "0"), ".")
}
