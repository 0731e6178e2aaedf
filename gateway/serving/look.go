package serving

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/internal/lifecycle"
	manager "github.com/berthhq/berth/manager/deployment"
)

// state is a deployment as the database has it.
type state struct {
	version, wanted, concurrency int
	ending, recorded             bool
	weights                      map[int]int // percent, by revision
	replicas                     []row
}

// row is a replica as the database has it. The newest is the last.
type row struct {
	place
	id       uuid.UUID
	revision int
	phase    deploymentreplica.Phase
	message  string
	session  lifecycle.Status // "" without a session
	zone     string           // of its agent
}

// place is where the engine of a replica listens.
type place struct {
	kernel uuid.UUID
	agent  string
	port   int
}

// gets reports whether a replica is a target of the router, which is also one that is drained.
func (r row) gets() bool {
	return r.agent != "" && r.port > 0 && (r.phase == deploymentreplica.PhaseReady || r.phase == deploymentreplica.PhaseDraining)
}

// replicasOf selects the replicas of deployments, with the containers that their engines are in.
const replicasOf = `
SELECT p.deployment_id, p.id, p.revision, p.phase, p.message, COALESCE(s.status, ''), k.id, COALESCE(a.name, ''), COALESCE(a.zone, ''), v.engine
FROM deployment_replicas p
JOIN deployment_revisions v ON v.deployment_id = p.deployment_id AND v.number = p.revision
LEFT JOIN sessions s ON s.id = p.session_id
LEFT JOIN kernels k ON k.session_id = p.session_id AND k.role = 'main'
LEFT JOIN agents a ON a.id = k.agent_id
WHERE p.deployment_id = ANY($1::uuid[]) AND p.ended_at IS NULL
ORDER BY p.created_at, p.id`

// look reads deployments that have not ended, and their replicas. The replicas are read after the versions of the
// deployments, so they are at least as new.
func (f *fleet) look(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*state, error) {
	rows, err := f.Client.Deployment.Query().Where(deployment.IDIn(ids...), deployment.EndedAtIsNil()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read deployments: %w", err)
	}
	out := make(map[uuid.UUID]*state, len(rows))
	for _, d := range rows {
		out[d.ID] = &state{version: d.Version, wanted: d.Wanted, concurrency: d.Concurrency, weights: d.Weights,
			ending: d.Status == deployment.StatusEnding, recorded: d.Recorded}
	}
	return out, f.lookAt(ctx, out)
}

// lookAt reads the replicas of deployments.
func (f *fleet) lookAt(ctx context.Context, of map[uuid.UUID]*state) error {
	ids := make([]string, 0, len(of))
	for id := range of {
		ids = append(ids, id.String())
	}
	found, err := f.Client.QueryContext(ctx, replicasOf, ids)
	if err != nil {
		return fmt.Errorf("read replicas: %w", err)
	}
	defer found.Close()
	for found.Next() {
		var (
			deployment uuid.UUID
			r          row
			kernel     uuid.NullUUID
			engine     json.RawMessage
		)
		if err := found.Scan(&deployment, &r.id, &r.revision, &r.phase, &r.message, &r.session, &kernel, &r.agent, &r.zone, &engine); err != nil {
			return fmt.Errorf("read replicas: %w", err)
		}
		e, err := manager.EngineOf(&ent.DeploymentRevision{Engine: engine})
		if err != nil {
			return fmt.Errorf("read the engine of revision %d: %w", r.revision, err)
		}
		r.kernel, r.port = kernel.UUID, e.Port
		of[deployment].replicas = append(of[deployment].replicas, r)
	}
	return found.Err()
}

// shareUnit is the weight of a percent. It is large, so that no share rounds to 0 when many replicas divide it.
const shareUnit = 100_000

// weight returns the weight of a replica: its part of the share of its revision.
func (s *state) weight(r row) int {
	if s.ending || r.phase != deploymentreplica.PhaseReady || !r.gets() {
		return 0
	}
	ready := 0
	for _, other := range s.replicas {
		if other.revision == r.revision && other.phase == deploymentreplica.PhaseReady && other.gets() {
			ready++
		}
	}
	return s.weights[r.revision] * shareUnit / ready
}

// named reports whether a replica gets the requests that name its revision, which need no share.
func (s *state) named(r row) bool {
	return !s.ending && r.phase == deploymentreplica.PhaseReady && r.gets()
}

// stages are the texts for users about the start of a replica's session.
var stages = map[lifecycle.Status]string{
	lifecycle.Pending: "waiting for capacity", lifecycle.Scheduled: "preparing the machine", lifecycle.Preparing: "pulling the image",
	lifecycle.Prepared: "creating the container", lifecycle.Creating: "creating the container", lifecycle.Running: "the engine starts",
}

// progress says how far the start of the newest replica is.
func (s *state) progress() string {
	ready, newest := 0, -1
	for i, r := range s.replicas {
		switch r.phase {
		case deploymentreplica.PhaseReady:
			ready++
		case deploymentreplica.PhaseStarting:
			newest = i
		}
	}
	if newest < 0 {
		return "waiting for a replica"
	}
	r := s.replicas[newest]
	text := r.message
	if text == "" {
		text = stages[r.session]
	}
	if text == "" {
		text = "creating the session"
	}
	return fmt.Sprintf("replica %d of %d: %s", ready+1, max(s.wanted, ready+1), strings.TrimSuffix(text, "."))
}
