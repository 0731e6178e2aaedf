package deployment

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/ent/deploymentrevision"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/manager/deployment/expression"
	"github.com/berthhq/berth/manager/deployment/load"
)

// seen is a deployment as it is observed.
type seen struct {
	*ent.Deployment
	replicas []*ent.DeploymentReplica // that have not ended, with their sessions
	engines  map[int]Engine           // by revision
	rows     map[int]*ent.DeploymentRevision
	load     load.Total
	reported bool // a gateway reports
	// expressions are those of the rules, each parsed once.
	expressions []*expression.Expression
}

// look observes all deployments that have not ended, decides about each, and carries the decisions out.
func (t *term) look(ctx context.Context) error {
	all, err := t.observe(ctx)
	if err != nil {
		return err
	}
	t.probes.follow(all)
	t.forget(all)
	for _, d := range all {
		if err := t.tend(ctx, d); err != nil && ctx.Err() == nil {
			t.Logger.WarnContext(ctx, "tend deployment", "deployment", d.ID, "name", d.Name, "error", err)
		}
	}
	return nil
}

// forget drops what is remembered of deployments that have ended, and notes the sessions of the others.
func (t *term) forget(all []*seen) {
	live := map[uuid.UUID]bool{}
	t.sessions = map[uuid.UUID]bool{}
	for _, d := range all {
		live[d.ID] = true
		for _, r := range d.replicas {
			live[r.ID] = true
			if r.SessionID != nil {
				t.sessions[*r.SessionID] = true
			}
		}
	}
	for id := range t.calls {
		if !live[id] {
			delete(t.calls, id)
		}
	}
	for id := range t.retry {
		if !live[id] {
			delete(t.retry, id)
		}
	}
}

// observe reads the deployments with a constant number of statements.
func (t *term) observe(ctx context.Context) ([]*seen, error) {
	rows, err := t.Client.Deployment.Query().Where(entdeployment.EndedAtIsNil()).Order(entdeployment.ByCreatedAt()).
		WithReplicas(func(q *ent.DeploymentReplicaQuery) {
			q.Where(deploymentreplica.EndedAtIsNil()).Order(deploymentreplica.ByCreatedAt(), deploymentreplica.ByID())
			q.WithSession(func(q *ent.SessionQuery) {
				q.WithKernels(func(q *ent.KernelQuery) { q.Where(kernel.Index(0)).WithAgent() })
			})
		}).All(ctx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	all, ids := make([]*seen, len(rows)), make([]uuid.UUID, len(rows))
	index, numbers := map[uuid.UUID]*seen{}, map[int]bool{}
	for i, d := range rows {
		all[i] = &seen{Deployment: d, replicas: d.Edges.Replicas, engines: map[int]Engine{}, rows: map[int]*ent.DeploymentRevision{}}
		ids[i], index[d.ID] = d.ID, all[i]
		numbers[d.Current], numbers[d.Target] = true, true
		for _, r := range d.Edges.Replicas {
			numbers[r.Revision] = true
		}
	}
	revisions, err := t.Client.DeploymentRevision.Query().
		Where(deploymentrevision.DeploymentIDIn(ids...), deploymentrevision.NumberIn(slices.Collect(maps.Keys(numbers))...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read revisions: %w", err)
	}
	for _, r := range revisions {
		d := index[r.DeploymentID]
		e, err := EngineOf(r)
		if err != nil {
			return nil, err
		}
		d.engines[r.Number], d.rows[r.Number] = *e, r
	}
	t.parse(all)
	loads, err := t.Loads.Read(ctx, ids...)
	if err != nil { // the replicas are kept as they are; only numbers and drains wait
		t.Logger.WarnContext(ctx, "read the load of deployments", "error", err)
	} else {
		t.announce(ctx, ids, loads)
	}
	for _, d := range all {
		d.load, d.reported = loads[d.ID]
	}
	return all, nil
}

// parse notes the expressions of the rules. They were checked before they were stored.
func (t *term) parse(all []*seen) {
	now := map[string]*expression.Expression{}
	for _, d := range all {
		s, err := stored[Scaling](d.Scaling)
		if err != nil {
			continue // number reports it
		}
		for _, target := range s.Targets {
			text, is := strings.CutPrefix(target.Metric, ofExpression)
			if !is {
				continue
			}
			e := t.expressions[text]
			if e == nil {
				e = now[text]
			}
			if e == nil {
				if e, err = expression.Parse(text); err != nil {
					continue // of another version: its value is unknown
				}
			}
			now[text] = e
			d.expressions = append(d.expressions, e)
		}
	}
	t.expressions = now
}

// announceEvery is the time between two announcements of loads. It is shorter than lookEvery, so that none of the regular looks is
// too early.
const announceEvery = lookEvery - 100*time.Millisecond

// announce publishes an event about each deployment whose load has changed since the last time, for those who look at it.
func (t *term) announce(ctx context.Context, ids []uuid.UUID, loads map[uuid.UUID]load.Total) {
	now := clock.Now()
	if now.Sub(t.announced) < announceEvery {
		return
	}
	for _, id := range ids {
		if !reflect.DeepEqual(t.loads[id], loads[id]) {
			t.Bus.Publish(ctx, event.Event{Topic: event.Deployment, ID: id, By: event.BySamples})
		}
	}
	t.announced, t.loads = now, loads
}
