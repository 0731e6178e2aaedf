package deployment

import (
	"context"
	"fmt"
	"regexp"
	"unicode/utf8"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deploymentevent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/deployment/rollout"
	"github.com/berthhq/berth/manager/deployment/scale"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

const (
	maxText        = 1000 // characters of a description or comment
	maxConcurrency = 10000
)

// progress is what decisions remember, as it is stored.
type progress struct {
	Rollout rollout.State
	Scale   scale.State
	// Before is the revision that was current before the last change; 0 = none.
	Before int
}

// settings are the checked settings of a deployment.
type settings struct {
	strategy Strategy
	scaling  Scaling
	replicas int
}

// CreateDeployment stores a deployment with its first revision. The leader starts its replicas.
func (s *Service) CreateDeployment(ctx context.Context, in CreateDeploymentInput) (*DeploymentPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	if !nameRule.MatchString(in.Name) {
		return nil, problem.Invalid("name", "%.100q is not 1 to 63 lower-case letters, digits and . _ - that begin with a letter or digit", in.Name).WithLimit("63")
	}
	with, err := checked(in.Description, in.Concurrency, in.DrainSeconds, in.Replicas, usual(), alone(), in.Strategy, in.Scaling)
	if err != nil {
		return nil, err
	}
	if in.Replicas == nil {
		with.replicas = max(with.scaling.Min, 1)
	}
	p, err := s.project(ctx, v, in.Project)
	if err != nil {
		return nil, err
	}
	if err := mayOpen(v, in.Open, p.DomainID); err != nil {
		return nil, err
	}
	r, err := s.revision(ctx, in.Name, p.ID, in.Revision)
	if err != nil {
		return nil, problem.Within(err, "revision")
	}
	made, err := s.insert(ctx, v, in, with, p, r)
	if sqlgraph.IsUniqueConstraintError(err) {
		return nil, problem.Exists("name", "a deployment of the domain is already named %q", in.Name)
	}
	if err != nil {
		return nil, err
	}
	s.changed(ctx, made)
	return s.payload(ctx, made, nil)
}

// project returns the project of a new deployment, in which the viewer can start sessions.
func (s *Service) project(ctx context.Context, v *viewer.Viewer, named *uuid.UUID) (*ent.Project, error) {
	if err := s.Sessions.CheckProject(ctx, v, named); err != nil {
		return nil, err
	}
	if named == nil {
		named = &v.Projects[0]
	}
	p, err := s.Client.Project.Get(ctx, *named)
	if err != nil {
		return nil, permit.Missing(err, "project", "project")
	}
	_, err = permit.Check(ctx, access.Create, access.Deployment, access.Object{Domain: p.DomainID, Project: p.ID, Owner: v.User})
	return p, err
}

// mayOpen checks whether the viewer can let everyone send requests.
func mayOpen(v *viewer.Viewer, open *bool, domain uuid.UUID) error {
	if open == nil || !*open || v.Superadmin() || v.Role == viewer.RoleAdmin && v.Domain == domain {
		return nil
	}
	return problem.Forbidden("only an admin of the domain can let requests without a key use a deployment").WithField("open")
}

// checked returns the settings after a change.
func checked(description *string, concurrency, drain, replicas *int, st Strategy, sc Scaling, stIn *DeploymentStrategyInput, scIn *DeploymentScalingInput) (out settings, err error) {
	if description != nil && utf8.RuneCountInString(*description) > maxText {
		return out, problem.Invalid("description", "has more than %d characters", maxText).WithLimit(fmt.Sprint(maxText))
	}
	if concurrency != nil {
		if err := within("concurrency", *concurrency, 0, maxConcurrency); err != nil {
			return out, err
		}
	}
	if drain != nil {
		if err := within("drainSeconds", *drain, 0, maxWait); err != nil {
			return out, err
		}
	}
	if out.strategy, err = st.with(stIn); err != nil {
		return out, err
	}
	if out.scaling, err = sc.with(scIn); err != nil {
		return out, err
	}
	if replicas != nil {
		out.replicas = *replicas
		return out, within("replicas", *replicas, out.scaling.Min, out.scaling.Max)
	}
	return out, nil
}

// insert stores a deployment and its first revision.
func (s *Service) insert(ctx context.Context, v *viewer.Viewer, in CreateDeploymentInput, with settings, p *ent.Project, r *revision) (uuid.UUID, error) {
	made, now := id.New(id.Deployment), clock.Now()
	ctx = viewer.SystemContext(ctx)
	return made, store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := s.room(ctx, tx, v, p); err != nil {
			return err
		}
		state := progress{
			Rollout: rollout.State{Wanted: with.replicas, Current: 1, Target: 1},
			Scale:   scale.State{Wanted: with.replicas, LastRequest: now},
		}
		err := tx.Deployment.Create().SetID(made).SetName(in.Name).SetNillableDescription(in.Description).SetNillableShared(in.Shared).SetNillableOpen(in.Open).
			SetNillableRecorded(in.Recorded).
			SetDomainID(p.DomainID).SetProjectID(p.ID).SetOwnerID(v.User).SetWanted(with.replicas).SetCurrent(1).SetTarget(1).
			SetStrategy(text(with.strategy)).SetScaling(text(with.scaling)).SetProgress(text(state)).SetWeights(map[int]int{1: 100}).
			SetNillableConcurrency(in.Concurrency).SetNillableDrainSeconds(in.DrainSeconds).SetMessage("no replica has been ready yet").Exec(ctx)
		if err != nil {
			return fmt.Errorf("store deployment: %w", err)
		}
		if err := r.insert(ctx, tx, made, 1, v.User); err != nil {
			return err
		}
		return record(ctx, tx, made, note{kind: deploymentevent.KindCreated, revision: 1, after: &with.replicas})
	})
}
