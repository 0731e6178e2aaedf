package remotewrite

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/store"
)

// The kinds of subjects, which are part of the names of metrics.
const (
	container = "container"
	machine   = "machine"
	device    = "device"
	served    = "deployment"
)

const (
	// subjectLife is how long labels are kept, so that a new name of a user or a group appears.
	subjectLife = 5 * time.Minute
	maxSubjects = 20_000
)

// subject is what measurements are about, in the words of labels.
type subject struct {
	kind   string
	labels map[string]string
	slots  resource.Slots // of a container
	read   time.Time
}

// find returns the labels of the subjects of a source; those that no longer exist are missing.
func (s *Service) find(ctx context.Context, source uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]subject, error) {
	now := clock.Now()
	if len(s.subjects) > maxSubjects {
		clear(s.subjects)
	}
	var missing []uuid.UUID
	for _, id := range ids {
		if known, ok := s.subjects[id]; !ok || now.Sub(known.read) > subjectLife {
			delete(s.subjects, id)
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		if err := s.look(ctx, missing, now); err != nil {
			return nil, fmt.Errorf("find the subjects of measurements of %s: %w", source, err)
		}
	}
	found := map[uuid.UUID]subject{}
	for _, id := range ids {
		if known, ok := s.subjects[id]; ok {
			found[id] = known
		}
	}
	return found, nil
}

// look reads subjects from the database.
func (s *Service) look(ctx context.Context, ids []uuid.UUID, now time.Time) error {
	ctx = store.StatementTimeout(ctx, readTime)
	kernels, err := s.Client.Kernel.Query().Where(kernel.IDIn(ids...)).WithAgent().
		WithSession(func(q *ent.SessionQuery) { q.WithOwner().WithProject().WithResourceGroup() }).All(ctx)
	if err != nil {
		return err
	}
	for _, k := range kernels {
		of := k.Edges.Session
		labels := map[string]string{
			"id": k.ID.String(), "container": k.Hostname, "session": of.Name, "session_id": of.ID.String(),
			"user": of.Edges.Owner.Email, "project": of.Edges.Project.Name, "group": of.Edges.ResourceGroup.Name,
		}
		if k.Edges.Agent != nil {
			labels["agent"] = k.Edges.Agent.Name
		}
		s.subjects[k.ID] = subject{container, labels, k.Slots, now}
	}
	agents, err := s.Client.Agent.Query().Where(agent.IDIn(ids...)).WithResourceGroup().All(ctx)
	if err != nil {
		return err
	}
	for _, a := range agents {
		s.subjects[a.ID] = subject{machine, map[string]string{"agent": a.Name, "group": a.Edges.ResourceGroup.Name}, nil, now}
	}
	deployments, err := s.Client.Deployment.Query().Where(deployment.IDIn(ids...)).WithProject().WithOwner().All(ctx)
	if err != nil {
		return err
	}
	for _, d := range deployments {
		labels := map[string]string{"id": d.ID.String(), "deployment": d.Name, "project": d.Edges.Project.Name, "user": d.Edges.Owner.Email}
		s.subjects[d.ID] = subject{served, labels, nil, now}
	}
	return nil
}
