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
	// forgetAfter is long enough for a machine's repair, and for an operator to see
	// what is gone.
	forgetAfter = time.Hour
)

// unreported is the health message of a device that its agent no longer reports.
const unreported = "no longer reported by its agent"

// forgetDevices removes the rows of devices that live agents have not reported for
// forgetAfter, if no session has ever held them: a plugin that showed nonsense once
// would leave them for good. A device that someone holds or held stays, for usage and
// history point at it. Since, when each was first seen lost, is this leader's memory.
func (s *Service) forgetDevices(ctx context.Context, since map[uuid.UUID]time.Time) error {
	lost, err := s.client.Device.Query().Where(device.HealthEQ(device.HealthLost), device.HealthMessage(unreported),
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
		n, err := s.client.Device.Delete().Where(device.IDIn(ids...), device.HealthEQ(device.HealthLost), neverHeld).Exec(ctx)
		if err != nil {
			return fmt.Errorf("forget devices of agent %s: %w", agentID, err)
		}
		for _, id := range ids {
			since[id] = now // those with a history are looked at again in an hour
		}
		if n > 0 {
			s.log.Info("lost devices forgotten", "agent", agentID, "devices", n)
			s.bus.Publish(ctx, event.Event{Topic: event.Agent, ID: agentID})
		}
	}
	return nil
}

// neverHeld keeps devices that no allocation, live or freed, names.
func neverHeld(s *sql.Selector) {
	t := sql.Table(allocation.Table)
	s.Where(sql.Not(sql.Exists(sql.Select(t.C(allocation.FieldID)).From(t).Where(sql.ColumnsEQ(t.C(allocation.FieldDeviceID), s.C(device.FieldID))))))
}
