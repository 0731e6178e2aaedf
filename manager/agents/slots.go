package agents

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/slottype"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// upsertSlotTypes stores the slot types of an agent. It returns those that an agent gives only in
// certain amounts, or gave so in its previous report.
func upsertSlotTypes(ctx context.Context, tx *ent.Tx, types []*agentpb.SlotType) (counted []string, err error) {
	// Rows are written in one order, so that concurrent reports do not deadlock. Unchanged rows are
	// not written, so that most reports do not wait for each other at all.
	known, err := tx.SlotType.Query().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read slot types: %w", err)
	}
	have := map[string]*ent.SlotType{}
	for _, t := range known {
		have[t.Name] = t
		if len(t.AllowedCounts) > 0 {
			counted = append(counted, t.Name)
		}
	}
	types = slices.SortedFunc(slices.Values(types), func(a, b *agentpb.SlotType) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range types {
		if len(t.AllowedCounts) > 0 && !slices.Contains(counted, t.Name) {
			counted = append(counted, t.Name)
		}
		if same(have[t.Name], t) {
			continue
		}
		if !resource.ValidName(t.Name) {
			return nil, fmt.Errorf("slot type %q has no valid name: %w", t.Name, errdefs.ErrInvalidArgument)
		}
		err := tx.SlotType.Create().SetName(t.Name).SetKind(strings.ToLower(t.Kind.String())).
			SetDisplayName(t.DisplayName).SetDescription(t.Description).SetUnit(t.Unit).SetIcon(t.Icon).
			SetQuantum(t.Quantum).SetExclusiveWith(nonNil(t.ExclusiveWith)).SetUnified(t.Unified).
			OnConflictColumns(slottype.FieldName).
			Update(func(u *ent.SlotTypeUpsert) {
				u.UpdateKind().UpdateDisplayName().UpdateDescription().UpdateUnit().UpdateIcon().
					UpdateQuantum().UpdateExclusiveWith().UpdateUnified()
			}).Exec(ctx)
		if err != nil {
			return nil, fmt.Errorf("record slot type %s: %w", t.Name, err)
		}
	}
	return counted, nil
}

// countsOf returns the slots that an agent gives only in certain amounts.
func countsOf(types []*agentpb.SlotType) report.Counts {
	counts := report.Counts{}
	for _, t := range types {
		for _, n := range t.AllowedCounts {
			counts[t.Name] = append(counts[t.Name], int(n))
		}
	}
	return counts
}

// countSlots updates the allowed amounts of slots: the amounts that any agent with the slot gives,
// or every amount if one of these agents does not limit them.
func countSlots(ctx context.Context, tx *ent.Tx, slots []string) error {
	if len(slots) == 0 {
		return nil
	}
	// Concurrent reports wait here, and then read the rows that this one wrote.
	_, err := tx.ExecContext(ctx, `SELECT FROM slot_types WHERE name IN (SELECT unnest($1::text[])) ORDER BY name FOR UPDATE`, slots)
	if err != nil {
		return fmt.Errorf("lock slot types: %w", err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE slot_types SET allowed_counts = now.counts FROM (
SELECT t.name, CASE WHEN bool_and(coalesce(a.allowed_counts ? t.name, false))
	THEN jsonb_agg(DISTINCT n ORDER BY n) FILTER (WHERE n IS NOT NULL) ELSE '[]' END AS counts
FROM slot_types t
LEFT JOIN agents a ON a.status <> 'terminated' AND EXISTS (SELECT 1 FROM devices d WHERE d.agent_id = a.id AND d.capacity ? t.name)
LEFT JOIN LATERAL jsonb_array_elements(a.allowed_counts -> t.name) n ON true
WHERE t.name IN (SELECT unnest($1::text[])) GROUP BY t.name) now
WHERE now.name = slot_types.name AND now.counts <> slot_types.allowed_counts`, slots)
	if err != nil {
		return fmt.Errorf("count slots: %w", err)
	}
	return nil
}

func same(row *ent.SlotType, t *agentpb.SlotType) bool {
	return row != nil && row.Kind == strings.ToLower(t.Kind.String()) && row.DisplayName == t.DisplayName &&
		row.Description == t.Description && row.Unit == t.Unit && row.Icon == t.Icon && row.Quantum == t.Quantum &&
		slices.Equal(row.ExclusiveWith, t.ExclusiveWith) && row.Unified == t.Unified
}
