package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/overlay"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session/move"
)

// targets are the agents of a batch that still accept sessions, with their overlay
// endpoints.
type targets struct {
	group    map[uuid.UUID]uuid.UUID
	overlay  map[uuid.UUID]report.Overlay
	networks overlay.Range
	used     *overlay.Used // read for the first session over several agents
}

// lockTargets reads the agents of a batch that still accept sessions, and locks them.
func (t *term) lockTargets(ctx context.Context, tx *ent.Tx, batch []plan.Decision) (*targets, error) {
	ids := map[string]bool{}
	for _, d := range batch {
		for _, a := range d.Assignments {
			ids[a.AgentID.String()] = true
		}
	}
	// Locked, so that an agent does not leave its group between this and the placement.
	rows, err := tx.QueryContext(ctx, `SELECT id, resource_group_id, overlay::text FROM agents WHERE id = ANY ($1::text[]::uuid[]) AND schedulable AND status = 'alive' AND NOT conditions @> '[{"status": true}]' ORDER BY id FOR KEY SHARE`,
		slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	defer rows.Close()
	h := &targets{group: map[uuid.UUID]uuid.UUID{}, overlay: map[uuid.UUID]report.Overlay{}, networks: t.networks}
	for rows.Next() {
		var id, group uuid.UUID
		var text string
		var o report.Overlay
		err := rows.Scan(&id, &group, &text)
		if err == nil {
			err = json.Unmarshal([]byte(text), &o)
		}
		if err != nil {
			return nil, fmt.Errorf("read agents: %w", err)
		}
		h.group[id], h.overlay[id] = group, o
	}
	return h, rows.Err()
}

// network reserves a network for a session that is placed on several agents, and returns
// nil for a session on one agent. It returns false if no network is available.
func (h *targets) network(ctx context.Context, tx *ent.Tx, d plan.Decision) (*move.Network, bool, error) {
	on := map[uuid.UUID]bool{}
	mtu := 0
	for _, a := range d.Assignments {
		on[a.AgentID] = true
		o := h.overlay[a.AgentID]
		if o.Endpoint == "" {
			mtu = -1
		} else if mtu == 0 || o.MTU < mtu {
			mtu = o.MTU
		}
	}
	switch {
	case len(on) < 2:
		return nil, true, nil
	case mtu < 0:
		return nil, false, nil
	}
	if h.used == nil {
		var err error
		if h.used, err = h.networks.Read(ctx, tx.SessionNetwork); err != nil {
			return nil, false, err
		}
	}
	p, ok := h.used.Take(len(d.Assignments))
	if !ok {
		return nil, false, nil
	}
	return &move.Network{Part: p, MTU: mtu}, true, nil
}
