package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentevent"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/task"
)

// retryRefused is the time after which a session that was refused is requested again.
const retryRefused = 10 * time.Second

// carryOut requests the sessions that are missing, and ends those that are to end.
func (t *term) carryOut(ctx context.Context, d *seen) error {
	var all []error
	for _, r := range d.replicas {
		switch {
		case r.Phase == deploymentreplica.PhaseStarting && r.SessionID == nil:
			if now := clock.Now(); now.After(t.retry[r.ID]) {
				t.retry[r.ID] = now.Add(retryRefused)
				all = append(all, t.request(ctx, d, r))
			}
		case r.Phase == deploymentreplica.PhaseEnding && r.SessionID != nil && !over(r):
			_, err := t.Sessions.TerminateSession(ctx, session.TerminateSessionInput{ID: *r.SessionID, Why: whyEnd(d, r)})
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// whyEnd says in the history of a session why it ends.
func whyEnd(d *seen, r *ent.DeploymentReplica) string {
	if r.Failed {
		return "the replica failed: " + r.Message
	}
	return fmt.Sprintf("deployment %s no longer needs the replica", d.Name)
}

// request creates the session of a replica as the owner of the deployment. The replica's id is the key of the request, so that a
// repeated request returns the same session.
func (t *term) request(ctx context.Context, d *seen, r *ent.DeploymentReplica) error {
	row := d.rows[r.Revision]
	if row == nil {
		return t.refuse(ctx, d, r, fmt.Sprintf("revision %d no longer exists", r.Revision), true)
	}
	all, err := t.Users.Rights(ctx, []uuid.UUID{d.OwnerID})
	if err != nil {
		return err
	}
	owner := all[d.OwnerID]
	if owner == nil {
		return t.refuse(ctx, d, r, "the owner of the deployment is not active", false)
	}
	in, err := t.Service.request(row)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%.40s-r%d-%s", d.Name, r.Revision, r.ID.String()[30:])
	key := "replica-" + r.ID.String()
	in.Name, in.IdempotencyKey, in.Replica = &name, &key, true
	made, err := t.Sessions.CreateSession(viewer.With(ctx, owner), in)
	if said, known := problem.From(err); err != nil && known {
		return t.refuse(ctx, d, r, said.Message, task.Hopeless(said.Code))
	}
	if err != nil {
		return err
	}
	if err := t.Client.DeploymentReplica.UpdateOne(r).SetSessionID(made.Session.ID).SetMessage("").Exec(ctx); err != nil {
		return fmt.Errorf("store session of replica: %w", err)
	}
	t.changed(ctx, d.ID)
	return nil
}

// refuse records that a session was refused. A final refusal is a failure of the revision.
func (t *term) refuse(ctx context.Context, d *seen, r *ent.DeploymentReplica, why string, final bool) error {
	if why == r.Message && !final {
		return nil
	}
	err := store.InTx(ctx, t.Client, func(tx *ent.Tx) error {
		up := tx.DeploymentReplica.UpdateOne(r).SetMessage(why)
		if final {
			now, err := stored[progress](d.Progress)
			if err != nil {
				return err
			}
			p := &plan{seen: d, now: clock.Now(), progress: now, failed: map[uuid.UUID]string{}, phases: map[uuid.UUID]deploymentreplica.Phase{}}
			p.fail(r, why)
			n, err := tx.Deployment.Update().Where(entdeployment.ID(d.ID), entdeployment.Version(d.Version)).AddVersion(1).SetProgress(text(p.progress)).Save(ctx)
			if err != nil || n == 0 {
				return err
			}
			up.SetFailed(true).SetPhase(deploymentreplica.PhaseEnded).SetPhaseSince(p.now).SetEndedAt(p.now)
		}
		if err := up.Exec(ctx); err != nil {
			return fmt.Errorf("store refusal: %w", err)
		}
		return record(ctx, tx, d.ID, note{kind: deploymentevent.KindRefused, revision: r.Revision, message: why})
	})
	if err == nil {
		t.changed(ctx, d.ID)
	}
	return err
}

const (
	keptReplicas = 50 // ended ones of a deployment
	keptEvents   = 90 * 24 * time.Hour
)

// sweep deletes old events, and ended replicas that nothing shows.
func (s *Service) sweep(ctx context.Context) error {
	if _, err := s.Client.DeploymentEvent.Delete().Where(deploymentevent.CreatedAtLT(clock.Now().Add(-keptEvents))).Exec(ctx); err != nil {
		return fmt.Errorf("delete events: %w", err)
	}
	ids, err := s.Client.Deployment.Query().IDs(ctx)
	if err != nil {
		return fmt.Errorf("read deployments: %w", err)
	}
	for _, id := range ids {
		old, err := s.Client.DeploymentReplica.Query().Where(deploymentreplica.DeploymentID(id), deploymentreplica.EndedAtNotNil()).
			Order(deploymentreplica.ByEndedAt(sql.OrderDesc())).Offset(keptReplicas).Limit(1000).IDs(ctx)
		if err != nil {
			return fmt.Errorf("read replicas: %w", err)
		}
		if _, err := s.Client.DeploymentReplica.Delete().Where(deploymentreplica.IDIn(old...)).Exec(ctx); err != nil {
			return fmt.Errorf("delete replicas: %w", err)
		}
	}
	return nil
}
