package agents

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
)

const (
	forgetEvery = time.Minute
	// forgetAfter is long enough to repair a machine, and for an administrator to notice the
	// missing devices.
	forgetAfter = time.Hour
)

// unreported is the health message of a device that its agent no longer reports.
const unreported = "no longer reported by its agent"

// forgetDevices deletes the rows of devices that live agents have not reported for forgetAfter
// and that no session has ever used; otherwise, one faulty report of a plugin would leave them
// forever. A device with allocations, live or freed, stays, because usage and history refer to
// it. since is when this leader first saw each device missing.
func (s *Service) forgetDevices(ctx context.Context, since map[uuid.UUID]time.Time) error {
	lost, err := s.Client.Device.Query().Where(device.HealthEQ(device.HealthLost), device.HealthMessage(unreported),
		device.HasAgentWith(agent.StatusEQ(agent.StatusAlive))).Select(device.FieldID, device.FieldAgentID).All(ctx)
	if err != nil {
		return fmt.Errorf("look for lost devices: %w", err)
	}
	now := clock.Now()
	here := make(map[uuid.UUID]bool, len(lost))
	due := map[uuid.UUID][]uuid.UUID{} // by agent
	for _, d := range lost {
		here[d.ID] = true
		if first, ok := since[d.ID]; !ok {
			since[d.ID] = now
		} else if now.Sub(first) >= forgetAfter {
			due[d.AgentID] = append(due[d.AgentID], d.ID)
		}
	}
	for id := range since {
		if !here[id] {
			delete(since, id)
		}
	}
	for agentID, ids := range due {
		n, err := s.Client.Device.Delete().Where(device.IDIn(ids...), device.HealthEQ(device.HealthLost), neverHeld).Exec(ctx)
		if err != nil {
			return fmt.Errorf("forget devices of agent %s: %w", agentID, err)
		}
		for _, id := range ids {
			since[id] = now // a device with allocations is checked again in an hour
		}
		if n > 0 {
			s.Logger.Info("lost devices forgotten", "agent", agentID, "devices", n)
			s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: agentID})
		}
	}
	return nil
}

// neverHeld matches devices without any allocation, live or freed.
func neverHeld(s *sql.Selector) {
	t := sql.Table(allocation.Table)
	s.Where(sql.Not(sql.Exists(sql.Select(t.C(allocation.FieldID)).From(t).Where(sql.ColumnsEQ(t.C(allocation.FieldDeviceID), s.C(device.FieldID))))))
}
