package group

import (
	"fmt"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/netlist"
	"github.com/berthhq/berth/internal/problem"
)

// Options configure the scheduling of a group's queue; nil fields stay unchanged. HoldAfter,
// HalfLife, Lookback, LostAfter, PendingTimeout and PreemptionAfter are in seconds. A
// HoldAfter of -1 means never, a PendingTimeout of 0 no limit. HalfLife and Lookback apply to
// the usage for fair share, LostAfter is the time from the loss of an agent to LostPolicy, and
// PreemptionAfter the time that a session runs before it can be preempted.
type Options struct {
	Strategy  *resourcegroup.Strategy
	Split     *resourcegroup.Split
	Topology  *resourcegroup.Topology
	Order     *resourcegroup.Order
	HoldAfter *int
	HalfLife  *int
	Lookback  *int

	LostPolicy     *resourcegroup.LostPolicy
	LostAfter      *int
	MaxAttempts    *int
	PendingTimeout *int

	Preemption      *resourcegroup.Preemption
	PreemptionScope *resourcegroup.PreemptionScope
	PreemptionAfter *int

	// AllowedNetworks are private networks that containers can reach in addition to those that
	// their agent allows. A change applies to sessions that start afterwards.
	AllowedNetworks []string
}

const (
	minute = 60
	day    = 24 * 60 * minute
	year   = 365 * day
)

// number is a numeric option with its limits.
type number struct {
	field       string
	column      string
	n           *int
	least, most int
	what        string
}

func (o *Options) numbers() []number {
	return []number{
		{"holdAfter", resourcegroup.FieldHoldAfter, o.HoldAfter, -1, 30 * day, "seconds, -1 being never"},
		{"halfLife", resourcegroup.FieldHalfLife, o.HalfLife, minute, year, "seconds"},
		{"lookback", resourcegroup.FieldLookback, o.Lookback, minute, year, "seconds"},
		{"lostAfter", resourcegroup.FieldLostAfter, o.LostAfter, 0, 30 * day, "seconds"},
		{"maxAttempts", resourcegroup.FieldMaxAttempts, o.MaxAttempts, 1, 100, "attempts"},
		{"preemptionAfter", resourcegroup.FieldPreemptionAfter, o.PreemptionAfter, 0, year, "seconds"},
		{"pendingTimeout", resourcegroup.FieldPendingTimeout, o.PendingTimeout, 0, year, "seconds, or 0 for no limit"},
	}
}

func (o *Options) check() error {
	for _, x := range o.numbers() {
		if x.n != nil && (*x.n < x.least || *x.n > x.most) {
			return problem.Invalid(x.field, "must be %d to %d %s", x.least, x.most, x.what).
				WithLimit(fmt.Sprintf("%d..%d", x.least, x.most))
		}
	}
	if len(o.AllowedNetworks) > netlist.MaxEntries {
		return problem.Invalid("allowedNetworks", "has %d networks, more than %d", len(o.AllowedNetworks), netlist.MaxEntries).
			WithLimit(fmt.Sprintf("%d", netlist.MaxEntries))
	}
	for i, text := range o.AllowedNetworks {
		if err := netlist.Check(text); err != nil {
			return problem.Invalid(fmt.Sprintf("allowedNetworks[%d]", i), "%s", err)
		}
	}
	return nil
}

// write sets the options of a new or changed group.
func (o *Options) write(m *ent.ResourceGroupMutation) error {
	if o.Strategy != nil {
		m.SetStrategy(*o.Strategy)
	}
	if o.Split != nil {
		m.SetSplit(*o.Split)
	}
	if o.Topology != nil {
		m.SetTopology(*o.Topology)
	}
	if o.Order != nil {
		m.SetOrder(*o.Order)
	}
	if o.LostPolicy != nil {
		m.SetLostPolicy(*o.LostPolicy)
	}
	if o.Preemption != nil {
		m.SetPreemption(*o.Preemption)
	}
	if o.PreemptionScope != nil {
		m.SetPreemptionScope(*o.PreemptionScope)
	}
	if o.AllowedNetworks != nil {
		networks, err := netlist.Parse(o.AllowedNetworks)
		if err != nil {
			return err
		}
		m.SetAllowedNetworks(netlist.Strings(networks))
	}
	for _, x := range o.numbers() {
		if x.n == nil {
			continue
		}
		if err := m.SetField(x.column, *x.n); err != nil {
			return err
		}
	}
	return nil
}
