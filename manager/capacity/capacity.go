// Package capacity records the capacity of machines over time, and divides capacity times time into what was allocated and used, promised,
// unallocated and out of service (ADR 56).
//
// The leader compares the devices with the open spans, and ends and begins spans where they differ. One transaction has all changes of a
// comparison, so a leader that is killed leaves a ledger without overlaps; what changes while no manager leads counts from the next comparison.
package capacity

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/capacityspan"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/store"
)

// every is the distance of two comparisons, and so the precision of the ledger: half of the time after which a silent machine is lost.
const every = 15 * time.Second

// Service records the capacity of machines.
type Service struct {
	client *ent.Client
	log    *slog.Logger
}

// New returns a Service.
func New(client *ent.Client, log *slog.Logger) *Service { return &Service{client: client, log: log} }

// Lead records capacity until ctx ends. Only the leader runs it.
func (s *Service) Lead(ctx context.Context, epoch int64) {
	tick := clock.NewTicker("capacity of machines", every)
	defer tick.Stop()
	for {
		if err := s.Record(ctx, epoch, clock.Now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "record the capacity of machines", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// state is what a span records of a place.
type state struct {
	agent, group uuid.UUID
	amount       int64
	out          bool
}

// Record compares the devices with the open spans, and stores the differences as of a time.
func (s *Service) Record(ctx context.Context, epoch int64, now time.Time) error {
	ctx = store.On(viewer.SystemContext(ctx), store.Leader)
	return store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, epoch); err != nil {
			return err
		}
		current, err := present(ctx, tx)
		if err != nil {
			return err
		}
		open, err := tx.CapacitySpan.Query().Where(capacityspan.EndedAtIsNil()).All(ctx)
		if err != nil {
			return fmt.Errorf("read open spans of capacity: %w", err)
		}
		var ended []int64
		for _, o := range open {
			p := place{o.DeviceID, o.Slot}
			if current[p] == (state{o.AgentID, o.ResourceGroupID, o.Amount, o.Out}) {
				delete(current, p)
				continue
			}
			ended = append(ended, o.ID)
		}
		if err := end(ctx, tx, ended, now); err != nil {
			return err
		}
		return begin(ctx, tx, current, now)
	})
}

// present returns the state of all devices of machines that belong to the cluster.
func present(ctx context.Context, tx *ent.Tx) (map[place]state, error) {
	list, err := tx.Device.Query().Where(device.HasAgentWith(agent.StatusNEQ(agent.StatusTerminated))).WithAgent().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read devices: %w", err)
	}
	out := map[place]state{}
	for _, d := range list {
		a := d.Edges.Agent
		if a == nil {
			continue
		}
		off := a.Status != agent.StatusAlive || !a.Schedulable || report.Holding(a.Conditions) != "" || !d.Allocatable ||
			d.Health == device.HealthUnhealthy || d.Health == device.HealthLost
		for slot, amount := range d.Capacity {
			if amount > 0 {
				out[place{d.ID, slot}] = state{a.ID, a.ResourceGroupID, amount, off}
			}
		}
	}
	return out, nil
}

func end(ctx context.Context, tx *ent.Tx, ids []int64, now time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	// A clock that was set back ends a span where it began.
	_, err := tx.ExecContext(ctx, `UPDATE capacity_spans SET ended_at = GREATEST(began_at, $2) WHERE id = ANY($1::bigint[])`, ids, now)
	if err != nil {
		return fmt.Errorf("end spans of capacity: %w", err)
	}
	return nil
}

func begin(ctx context.Context, tx *ent.Tx, list map[place]state, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	var devices, agents, groups []uuid.UUID
	var slots []string
	var amounts []int64
	var outs []bool
	for p, st := range list {
		devices, agents, groups = append(devices, p.device), append(agents, st.agent), append(groups, st.group)
		slots, amounts, outs = append(slots, p.slot), append(amounts, st.amount), append(outs, st.out)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO capacity_spans (device_id, agent_id, resource_group_id, slot, amount, out, began_at)
SELECT *, $7::timestamptz FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::boolean[])`,
		devices, agents, groups, slots, amounts, outs, now)
	if err != nil {
		return fmt.Errorf("begin spans of capacity: %w", err)
	}
	return nil
}
