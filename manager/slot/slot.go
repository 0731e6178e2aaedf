// Package slot validates requested amounts against the known slots and the minimum of an
// image.
package slot

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/slottype"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Check returns an error for unknown slots, for two names of the same capacity, and for
// amounts that are not positive, not a multiple of the slot's step, or not available on any
// agent.
func Check(ctx context.Context, client *ent.Client, slots resource.Slots) error {
	known, err := client.SlotType.Query().Order(slottype.ByName()).All(ctx)
	if err != nil {
		return fmt.Errorf("read slot types: %w", err)
	}
	types := map[string]*ent.SlotType{resource.CPU: {}, resource.Mem: {}}
	var list []string
	for _, t := range known {
		types[t.Name] = t
		list = append(list, t.Name)
	}
	named := map[string]string{} // by family: the requested name of the devices' capacity
	for _, name := range slots.Names() {
		t := types[name]
		if t == nil {
			return problem.Invalid("slots."+name, "no such slot; known: %s", strings.Join(list, ", "))
		}
		if slots[name] <= 0 {
			return problem.Invalid("slots."+name, "must be more than 0").WithLimit("0")
		}
		if family, _, _ := strings.Cut(name, "."); t.Unified {
			if other := named[family]; other != "" {
				return problem.Invalid("slots."+name, "%s and %s are two units of the same slot; use one of them", other, name).WithLimit(other)
			}
			named[family] = name
		}
		// Without a step, the scale of the slot is the step.
		if n, err := resource.Parse(name, t.Quantum); err == nil && n > 0 && slots[name]%n != 0 {
			return problem.Invalid("slots."+name, "must be a multiple of %s", t.Quantum).WithLimit(t.Quantum)
		}
		if counts := (report.Counts{name: t.AllowedCounts}); len(t.AllowedCounts) > 0 && !counts.Allow(name, slots[name]) {
			list := report.ListCounts(t.AllowedCounts)
			return problem.Invalid("slots."+name, "%s is available in amounts of %s, not %s", name, list, resource.Format(name, slots[name])).WithLimit(list)
		}
	}
	return nil
}

// Complete adds the defaults for slots that a session does not request: one core, one GiB.
func Complete(slots resource.Slots) resource.Slots {
	all := resource.Slots{resource.CPU: 1000, resource.Mem: 1 << 30}
	maps.Copy(all, slots)
	return all
}
