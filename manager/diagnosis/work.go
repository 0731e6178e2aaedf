package diagnosis

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/ent/retention"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
)

const (
	// recent is how far back failures count.
	recent = 24 * time.Hour
	// late is the time after which work of the leader that runs every hour has been missed.
	late = 3 * time.Hour
	// stuck is the time that a start can take, with a large image.
	stuck = 30 * time.Minute
	// mostTasks limits the failed tasks that are named.
	mostTasks = 10
)

// images checks that users have something to start.
func (s *Service) images(ctx context.Context) ([]Finding, error) {
	n, err := s.Client.Image.Query().Where(image.VisibilityEQ(image.VisibilityPublic), image.StatusNEQ(image.StatusGone)).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count images: %w", err)
	}
	if n == 0 {
		return []Finding{{Severity: Warning, Text: "there is no public image", Consequence: "users have nothing to start", Fix: "add a registry and scan it: berth admin registry create, berth admin registry scan"}}, nil
	}
	return fine("%d public images", n), nil
}

// registries checks that scans by schedule happen.
func (s *Service) registries(ctx context.Context) (found []Finding, err error) {
	list, err := s.Client.Registry.Query().Order(registry.ByName()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read registries: %w", err)
	}
	for _, r := range list {
		every := time.Duration(r.ScanEvery) * time.Second
		if every > 0 && r.LastScannedAt != nil && clock.Now().Sub(*r.LastScannedAt) > 2*every+late {
			found = append(found, Finding{Severity: Warning, Subject: r.Name, SubjectID: &r.ID, Text: fmt.Sprintf("registry %s was last scanned at %s", r.Name, r.LastScannedAt.UTC().Format(time.DateTime)),
				Consequence: "new images are not offered", Fix: "scan it by hand and read the failure of the task"})
		}
	}
	return orFine(found, "%d", len(list))
}

// tasks checks what failed in the last day.
func (s *Service) tasks(ctx context.Context) (found []Finding, err error) {
	list, err := s.Client.Task.Query().Where(task.StatusEQ(task.StatusFailed), task.EndedAtGT(clock.Now().Add(-recent))).
		Order(task.ByEndedAt(sql.OrderDesc())).Limit(mostTasks).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	for _, t := range list {
		found = append(found, Finding{Severity: Warning, Subject: t.Kind, SubjectID: &t.ID, Text: fmt.Sprintf("task %s failed: %s", t.Kind, orUnknown(t.Message)),
			Consequence: "its work is not done", Fix: "remove the cause and retry it: berth admin task retry " + t.ID.String()})
	}
	return orFine(found, "none failed in the last day")
}

// retention checks that the leader deletes old rows.
func (s *Service) retention(ctx context.Context) (found []Finding, err error) {
	list, err := s.Client.Retention.Query().Where(retention.DaysGT(0), retention.SweptAtNotNil(), retention.SweptAtLT(clock.Now().Add(-late))).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read retention: %w", err)
	}
	for _, r := range list {
		found = append(found, Finding{Severity: Warning, Subject: r.Category, Text: fmt.Sprintf("old rows of %s were last deleted at %s", r.Category, r.SweptAt.UTC().Format(time.DateTime)),
			Consequence: "the database grows", Fix: "read the log of the leader"})
	}
	return orFine(found, "old rows are deleted every hour")
}

// sessions checks for sessions that do not get further.
func (s *Service) sessions(ctx context.Context) (found []Finding, err error) {
	list, err := s.Client.Session.Query().Where(session.StatusIn(lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared, lifecycle.Creating), session.ScheduledAtLT(clock.Now().Add(-stuck))).
		Order(session.ByCreatedAt()).Limit(mostTasks).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	for _, one := range list {
		found = append(found, Finding{Severity: Warning, Subject: one.Name, SubjectID: &one.ID, Text: fmt.Sprintf("session %s has a place since %s and is still %s", one.Name, one.ScheduledAt.UTC().Format(time.DateTime), one.Status),
			Consequence: "its user waits, and it occupies its slots", Fix: "read berth session events " + one.ID.String() + " and the log of its agent"})
	}
	return orFine(found, "none is stuck")
}
