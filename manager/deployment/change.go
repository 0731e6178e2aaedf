package deployment

import (
	"context"
	"fmt"
	"strings"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentevent"
	"github.com/berthhq/berth/ent/deploymentrevision"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/deployment/rollout"
)

// maxRevisions limits the revisions of a deployment; the oldest that do not serve are deleted.
const maxRevisions = 200

// UpdateDeployment changes settings. A number of replicas is wanted until a rule calls for another one.
func (s *Service) UpdateDeployment(ctx context.Context, in UpdateDeploymentInput) (*DeploymentPayload, error) {
	d, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	if err := mayOpen(viewer.From(ctx), in.Open, d.DomainID); err != nil {
		return nil, err
	}
	if in.Recorded != nil && *in.Recorded && viewer.From(ctx).User != d.OwnerID {
		return nil, problem.Forbidden("only the owner of deployment %s can record its requests", d.Name).WithField("recorded")
	}
	err = s.changing(ctx, d.ID, func(ctx context.Context, tx *ent.Tx, d *ent.Deployment) error {
		strategy, err := stored[Strategy](d.Strategy)
		if err != nil {
			return err
		}
		scaling, err := stored[Scaling](d.Scaling)
		if err != nil {
			return err
		}
		with, err := checked(in.Description, in.Concurrency, in.DrainSeconds, in.Replicas, strategy, scaling, in.Strategy, in.Scaling)
		if err != nil {
			return err
		}
		up := d.Update().AddVersion(1).SetStrategy(text(with.strategy)).SetScaling(text(with.scaling)).SetNillableDescription(in.Description).
			SetNillableShared(in.Shared).SetNillableOpen(in.Open).SetNillableRecorded(in.Recorded).SetNillableConcurrency(in.Concurrency).SetNillableDrainSeconds(in.DrainSeconds)
		if in.Replicas == nil || *in.Replicas == d.Wanted {
			if err := up.Exec(ctx); err != nil {
				return fmt.Errorf("change deployment: %w", err)
			}
			return record(ctx, tx, d.ID, note{kind: deploymentevent.KindChanged, message: in.names()})
		}
		now, err := stored[progress](d.Progress)
		if err != nil {
			return err
		}
		now.Rollout.Wanted, now.Scale.Wanted, now.Scale.Calls, now.Scale.LastRequest = *in.Replicas, *in.Replicas, nil, clock.Now()
		if err := up.SetWanted(*in.Replicas).SetProgress(text(now)).Exec(ctx); err != nil {
			return fmt.Errorf("change deployment: %w", err)
		}
		return record(ctx, tx, d.ID, note{kind: deploymentevent.KindScaled, before: &d.Wanted, after: in.Replicas, message: "set by a person"})
	})
	return s.payload(ctx, d.ID, err)
}

// names lists the settings that an input changes.
func (in UpdateDeploymentInput) names() string {
	var out []string
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"description", in.Description != nil}, {"shared", in.Shared != nil}, {"open", in.Open != nil}, {"recorded", in.Recorded != nil}, {"strategy", in.Strategy != nil},
		{"scaling", in.Scaling != nil}, {"concurrency", in.Concurrency != nil}, {"drainSeconds", in.DrainSeconds != nil},
	} {
		if f.given {
			out = append(out, f.name)
		}
	}
	return strings.Join(out, ", ")
}

// AddDeploymentRevision stores a revision and begins the change to it.
func (s *Service) AddDeploymentRevision(ctx context.Context, in AddDeploymentRevisionInput) (*DeploymentPayload, error) {
	d, err := s.find(ctx, in.Deployment, access.Update)
	if err != nil {
		return nil, problem.Within(err, "deployment")
	}
	v := viewer.From(ctx)
	if v.User != d.OwnerID { // its session would run with the rights of the owner, on what the viewer says
		return nil, problem.Forbidden("only the owner of deployment %s can add a revision, which runs with their rights", d.Name)
	}
	r, err := s.revision(ctx, d.Name, d.ProjectID, in.Revision)
	if err != nil {
		return nil, problem.Within(err, "revision")
	}
	err = s.changing(ctx, d.ID, func(ctx context.Context, tx *ent.Tx, d *ent.Deployment) error {
		last, err := tx.DeploymentRevision.Query().Where(deploymentrevision.DeploymentID(d.ID)).Order(deploymentrevision.ByNumber(sql.OrderDesc())).First(ctx)
		if err != nil {
			return fmt.Errorf("read revisions: %w", err)
		}
		if err := r.insert(ctx, tx, d.ID, last.Number+1, v.User); err != nil {
			return err
		}
		_, err = tx.DeploymentRevision.Delete().Where(deploymentrevision.DeploymentID(d.ID), deploymentrevision.NumberLTE(last.Number+1-maxRevisions),
			deploymentrevision.NumberNotIn(d.Current, d.Target)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("delete old revisions: %w", err)
		}
		return aim(ctx, tx, d, last.Number+1)
	})
	return s.payload(ctx, d.ID, err)
}

// RollBackDeployment begins the change to an older revision.
func (s *Service) RollBackDeployment(ctx context.Context, in RollBackDeploymentInput) (*DeploymentPayload, error) {
	d, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	err = s.changing(ctx, d.ID, func(ctx context.Context, tx *ent.Tx, d *ent.Deployment) error {
		to, err := earlier(d, in.Revision)
		if err != nil {
			return err
		}
		known, err := tx.DeploymentRevision.Query().Where(deploymentrevision.DeploymentID(d.ID), deploymentrevision.Number(to)).Exist(ctx)
		if err != nil {
			return fmt.Errorf("read revision: %w", err)
		}
		if !known {
			return problem.NotFound("revision").WithField("revision")
		}
		return aim(ctx, tx, d, to)
	})
	return s.payload(ctx, d.ID, err)
}

// earlier returns the revision to return to.
func earlier(d *ent.Deployment, named *int) (int, error) {
	if named != nil {
		if *named == d.Target {
			return 0, problem.Precondition("deployment %s has revision %d already", d.Name, *named).WithField("revision")
		}
		return *named, nil
	}
	if d.Target != d.Current {
		return d.Current, nil
	}
	now, err := stored[progress](d.Progress)
	if err != nil {
		return 0, err
	}
	if now.Before == 0 {
		return 0, problem.Precondition("deployment %s has had no other revision", d.Name).WithField("revision")
	}
	return now.Before, nil
}

// aim begins the change to a revision, and gives up another one.
func aim(ctx context.Context, tx *ent.Tx, d *ent.Deployment, revision int) error {
	now, err := stored[progress](d.Progress)
	if err != nil {
		return err
	}
	at := clock.Now()
	r := &now.Rollout
	delete(r.Failures, revision) // it gets a new chance
	r.Target, r.Began, r.StepBegan, r.Step, r.Promoted, r.Verdict, r.Erred = revision, at, at, 0, false, rollout.Unknown, false
	kind, why := deploymentevent.KindUpdating, fmt.Sprintf("from revision %d to %d", d.Current, revision)
	if revision == d.Current {
		kind, why = deploymentevent.KindRolledBack, fmt.Sprintf("a person gave up revision %d", d.Target)
	}
	if err := d.Update().AddVersion(1).SetTarget(revision).SetProgress(text(now)).Exec(ctx); err != nil {
		return fmt.Errorf("change deployment: %w", err)
	}
	return record(ctx, tx, d.ID, note{kind: kind, revision: revision, message: why})
}

// PromoteDeployment moves all requests to the new revision.
func (s *Service) PromoteDeployment(ctx context.Context, in PromoteDeploymentInput) (*DeploymentPayload, error) {
	d, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	err = s.changing(ctx, d.ID, func(ctx context.Context, tx *ent.Tx, d *ent.Deployment) error {
		if d.Target == d.Current {
			return problem.Precondition("deployment %s does not change to another revision", d.Name).WithField("id")
		}
		now, err := stored[progress](d.Progress)
		if err != nil {
			return err
		}
		now.Rollout.Promoted = true
		if err := d.Update().AddVersion(1).SetProgress(text(now)).Exec(ctx); err != nil {
			return fmt.Errorf("change deployment: %w", err)
		}
		return record(ctx, tx, d.ID, note{kind: deploymentevent.KindPromoted, revision: d.Target})
	})
	return s.payload(ctx, d.ID, err)
}

// DeleteDeployment ends the replicas, and then the deployment. Repeating it changes nothing.
func (s *Service) DeleteDeployment(ctx context.Context, in DeleteDeploymentInput) (*DeploymentPayload, error) {
	d, err := s.find(ctx, in.ID, access.Delete)
	if err != nil {
		return nil, err
	}
	err = s.changing(ctx, d.ID, func(ctx context.Context, _ *ent.Tx, d *ent.Deployment) error {
		if d.EndedAt != nil {
			return nil
		}
		up := d.Update().AddVersion(1).SetStatus(entdeployment.StatusEnding).SetMessage("its replicas end")
		if in.Force != nil && *in.Force {
			up.SetDrainSeconds(0)
		}
		if err := up.Exec(ctx); err != nil {
			return fmt.Errorf("end deployment: %w", err)
		}
		return nil
	})
	return s.payload(ctx, d.ID, err)
}
