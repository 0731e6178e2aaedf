package build

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/imagebuild"
	entsession "github.com/berthhq/berth/ent/session"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/task"
)

// CancelImageBuildInput names the build to cancel.
type CancelImageBuildInput struct{ ID uuid.UUID }

// CancelImageBuild cancels a build that has not ended, and ends its session.
func (s *Service) CancelImageBuild(ctx context.Context, in CancelImageBuildInput) (*ImageBuildPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	b, err := s.Client.ImageBuild.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "image build", "id")
	}
	if err := permit.To(ctx, access.Delete, b); err != nil {
		return nil, err
	}
	if b.EndedAt != nil || b.TaskID == nil {
		return nil, problem.Precondition("the build of %s is %s", b.Name, b.Status).WithField("id")
	}
	system := viewer.SystemContext(ctx)
	if _, err := s.Tasks.CancelTask(system, task.CancelTaskInput{ID: *b.TaskID}); err != nil {
		return nil, err
	}
	if b.SessionID != nil {
		s.end(ctx, *b.SessionID)
	}
	s.releaseInput(ctx, b)
	b, err = s.Client.ImageBuild.Get(ctx, in.ID)
	return &ImageBuildPayload{Build: b}, err
}

// Undo implements task.Undoer: the build is cancelled together with its task.
func (r runner) Undo(ctx context.Context, tx *ent.Tx, t *ent.Task) error {
	n, err := tx.ImageBuild.Update().Where(imagebuild.TaskID(t.ID), imagebuild.EndedAtIsNil()).SetStatus(imagebuild.StatusCancelled).
		SetMessage("cancelled").SetEndedAt(clock.Now()).ClearInputSealed().Save(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("cancel build: %w", err)
	}
	if n == 0 {
		return problem.Precondition("the build has ended")
	}
	return nil
}

// end ends the session of a build. What fails here, Lead repeats.
func (s *Service) end(ctx context.Context, id uuid.UUID) {
	force := true
	_, err := s.Sessions.TerminateSession(viewer.SystemContext(ctx), session.TerminateSessionInput{ID: id, Force: &force, Why: "its build has ended"})
	if err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "end the session of a build", "session", id, "error", err)
	}
}

// lookEvery is the time between two looks for builds whose manager was interrupted.
const lookEvery = 10 * time.Second

// Lead settles what an interrupted manager has left, until the context ends. Only the leader calls it.
func (s *Service) Lead(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	tick := clock.NewTicker("image builds", lookEvery)
	defer tick.Stop()
	swept := clock.Now()
	for {
		if clock.Now().Sub(swept) >= sweepEvery {
			swept = clock.Now()
			if err := s.sweepCaches(ctx); err != nil && ctx.Err() == nil {
				s.Logger.WarnContext(ctx, "sweep the caches of builds", "error", err)
			}
		}
		if err := s.settle(ctx); err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "settle image builds", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// settle ends the builds of ended tasks, and the sessions of ended builds.
func (s *Service) settle(ctx context.Context) error {
	open, err := s.Client.ImageBuild.Query().Where(imagebuild.EndedAtIsNil()).All(ctx)
	if err != nil {
		return fmt.Errorf("read builds: %w", err)
	}
	var tasks []uuid.UUID
	for _, b := range open {
		if b.TaskID != nil {
			tasks = append(tasks, *b.TaskID)
		}
	}
	over, err := s.Client.Task.Query().Where(enttask.IDIn(tasks...), enttask.EndedAtNotNil()).All(ctx)
	if err != nil {
		return fmt.Errorf("read tasks: %w", err)
	}
	for _, t := range over {
		err = s.Client.ImageBuild.Update().Where(imagebuild.TaskID(t.ID), imagebuild.EndedAtIsNil()).SetStatus(imagebuild.StatusFailed).
			SetMessage(t.Message).SetEndedAt(clock.Now()).ClearInputSealed().Exec(ctx)
		if err != nil {
			return fmt.Errorf("end build: %w", err)
		}
	}
	left, err := s.Client.Session.Query().Where(entsession.TerminatedAtIsNil(), entsession.IDIn(s.recent(ctx)...)).IDs(ctx)
	if err != nil {
		return fmt.Errorf("read sessions of builds: %w", err)
	}
	for _, id := range left {
		s.end(ctx, id)
	}
	return nil
}

// remembered limits the ended builds that are looked at.
const remembered = 500

// recent returns the sessions of builds that have ended a short time ago.
func (s *Service) recent(ctx context.Context) (ids []uuid.UUID) {
	list, err := s.Client.ImageBuild.Query().Where(imagebuild.EndedAtGT(clock.Now().Add(-24*time.Hour)), imagebuild.SessionIDNotNil()).
		Order(imagebuild.ByEndedAt(sql.OrderDesc())).Limit(remembered).Select(imagebuild.FieldSessionID).All(ctx)
	if err != nil {
		s.Logger.WarnContext(ctx, "read ended builds", "error", err)
	}
	for _, b := range list {
		ids = append(ids, *b.SessionID)
	}
	return ids
}
