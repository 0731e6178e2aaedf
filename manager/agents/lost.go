package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
)

const (
	// lostAfter is ten heartbeats of 3 s, so that the restart of a manager or of the agent
	// does not make the agent lost.
	lostAfter = 30 * time.Second
	// unreachableAfter is four heartbeats. Agents that lose the network together fall silent
	// within one heartbeat, so when the first of them is lost, all have been unreachable for
	// longer than this.
	unreachableAfter = 12 * time.Second
	// leastLost is the minimum number of agents of a mass loss.
	leastLost   = 2
	defaultMass = 0.5

	// sightEvery is how often a manager records its tunnels.
	sightEvery = 5 * time.Second
	// sightFresh is the maximum age of such a record in seconds: two updates can fail.
	sightFresh = 15
	// behindFor is how long a leader can reach fewer agents than another manager. Agents that
	// restart connect to all managers within seconds.
	behindFor = 20 * time.Second
)

// Disruption is a resource group with so many unreachable agents that the cause is more likely
// the network than the machines.
type Disruption struct {
	GroupID       uuid.UUID
	ResourceGroup string // name
	Unreachable   int
	Agents        int // number of agents of the group that are not gone
}

// lookForLost marks lost agents and finds mass losses.
func (s *Service) lookForLost(ctx context.Context) error {
	if err := s.trustOthers(ctx); err != nil {
		return err
	}
	now, err := s.Disruptions(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	before := s.outed
	s.outed, s.knows = now, true
	s.mu.Unlock()
	s.logDisrupted(before, now)
	return s.markLost(ctx)
}

// trustOthers keeps agents alive that only other managers have tunnels to, because one manager
// alone cannot decide that an agent is lost.
func (s *Service) trustOthers(ctx context.Context) error {
	now := clock.Now()
	_, err := s.Client.ExecContext(ctx, `UPDATE agents a SET last_seen_at = $1, status = 'alive', lost_at = NULL
FROM (SELECT agent_id FROM agent_sightings WHERE manager <> $2 AND seen_at > statement_timestamp() - make_interval(secs => $3) GROUP BY agent_id) s
WHERE a.id = s.agent_id AND a.status <> 'terminated' AND a.last_seen_at < $4`, now, s.ID, sightFresh, now.Add(-unreachableAfter/2))
	if err != nil {
		return fmt.Errorf("read which agents other managers see: %w", err)
	}
	return nil
}

// Disruptions returns the groups where more than MassLoss of the agents, and at least two, are
// unreachable at the same time.
func (s *Service) Disruptions(ctx context.Context) ([]Disruption, error) {
	rows, err := s.Client.QueryContext(viewer.SystemContext(ctx), `SELECT g.id, g.name, count(*),
  count(*) FILTER (WHERE a.status = 'lost' OR a.last_seen_at < $1)
FROM agents a JOIN resource_groups g ON g.id = a.resource_group_id WHERE a.status <> 'terminated'
GROUP BY g.id, g.name ORDER BY g.name`, clock.Now().Add(-unreachableAfter))
	if err != nil {
		return nil, fmt.Errorf("count unreachable agents: %w", err)
	}
	defer rows.Close()
	share := s.MassLoss
	if share == 0 {
		share = defaultMass
	}
	found := []Disruption{}
	for rows.Next() {
		var d Disruption
		if err := rows.Scan(&d.GroupID, &d.ResourceGroup, &d.Agents, &d.Unreachable); err != nil {
			return nil, fmt.Errorf("count unreachable agents: %w", err)
		}
		if d.Unreachable >= leastLost && float64(d.Unreachable) > share*float64(d.Agents) {
			found = append(found, d)
		}
	}
	return found, rows.Err()
}

func (s *Service) logDisrupted(before, now []Disruption) {
	in := func(list []Disruption, d Disruption) bool {
		return slices.ContainsFunc(list, func(o Disruption) bool { return o.GroupID == d.GroupID })
	}
	for _, d := range now {
		if !in(before, d) {
			s.Logger.Error("too many agents are unreachable at once; evictions stop in the resource group",
				"group", d.ResourceGroup, "unreachable", d.Unreachable, "agents", d.Agents)
		}
	}
	for _, d := range before {
		if !in(now, d) {
			s.Logger.Info("enough agents are reachable again; evictions continue in the resource group", "group", d.ResourceGroup)
		}
	}
}

// Disrupted reports whether sessions of a group must not be ended for lost agents now. It also
// returns true until a new leader has checked.
func (s *Service) Disrupted(group uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.knows || slices.ContainsFunc(s.outed, func(d Disruption) bool { return d.GroupID == group })
}

func (s *Service) markLost(ctx context.Context) error {
	silent, err := s.Client.Agent.Query().
		Where(agent.StatusEQ(agent.StatusAlive), agent.LastSeenAtLT(clock.Now().Add(-lostAfter))).All(ctx)
	if err != nil {
		return err
	}
	for _, a := range silent {
		if err := s.Client.Agent.UpdateOne(a).SetStatus(agent.StatusLost).SetLostAt(clock.Now()).Exec(ctx); err != nil {
			return fmt.Errorf("mark agent %s lost: %w", a.Name, err)
		}
		s.Logger.Warn("agent lost", "agent", a.Name, "last_seen", a.LastSeenAt)
		s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: a.ID})
	}
	return nil
}

// Sight records which agents this manager has tunnels to, for the leader, until ctx ends. A
// dead tunnel ends within eight seconds.
func (s *Service) Sight(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	tick := clock.NewTicker("sightings", sightEvery)
	defer tick.Stop()
	for {
		if err := s.sight(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("record which agents are reachable", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Service) sight(ctx context.Context) error {
	names := s.connected()
	if len(names) == 0 {
		return nil
	}
	_, err := s.Client.ExecContext(ctx, `INSERT INTO agent_sightings (id, manager, agent_id, seen_at)
SELECT gen_random_uuid(), $1, id, statement_timestamp() FROM agents WHERE name = ANY($2)
ON CONFLICT (manager, agent_id) DO UPDATE SET seen_at = excluded.seen_at`, s.ID, names)
	return err
}

func (s *Service) connected() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.conns))
	for name := range s.conns {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ErrOutreached reports that another manager reaches clearly more agents than this one.
var ErrOutreached = errors.New("another manager reaches more agents")

// Outreached returns ErrOutreached after another manager has reached clearly more agents than
// this one for a while, and nil when ctx ends.
func (s *Service) Outreached(ctx context.Context) error {
	ctx = viewer.SystemContext(ctx)
	tick := clock.NewTicker("sightings of others", sightEvery)
	defer tick.Stop()
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		best, err := s.bestOther(ctx)
		if err != nil {
			if ctx.Err() == nil {
				s.Logger.Warn("compare which agents managers reach", "error", err)
			}
			continue
		}
		mine := len(s.connected())
		switch {
		case !fewer(mine, best):
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= behindFor:
			return fmt.Errorf("%w: %d, this one %d", ErrOutreached, best, mine)
		}
	}
}

// fewer reports whether mine is less than best by more than a tenth.
func fewer(mine, best int) bool { return mine < best && mine*10 <= best*9 }

// bestOther returns the largest number of agents that another manager reaches, and deletes
// outdated records.
func (s *Service) bestOther(ctx context.Context) (best int, err error) {
	const forget = `DELETE FROM agent_sightings WHERE seen_at < statement_timestamp() - interval '1 hour'`
	if _, err := s.Client.ExecContext(ctx, forget); err != nil {
		return 0, fmt.Errorf("delete old sightings: %w", err)
	}
	rows, err := s.Client.QueryContext(ctx, `SELECT count(*) FROM agent_sightings
WHERE manager <> $1 AND seen_at > statement_timestamp() - make_interval(secs => $2) GROUP BY manager`, s.ID, sightFresh)
	if err != nil {
		return 0, fmt.Errorf("read which agents managers reach: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			return 0, fmt.Errorf("read which agents managers reach: %w", err)
		}
		best = max(best, n)
	}
	return best, rows.Err()
}
