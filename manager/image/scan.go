package image

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/registry"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/task"
)

// scanKind is the kind of the tasks that scan registries.
const scanKind = "image.scan"

// dueEvery is the pause between two looks for registries whose scan is due.
const dueEvery = 15 * time.Second

// ScanRegistryInput names the registry to scan.
type ScanRegistryInput struct{ ID uuid.UUID }

// ScanRegistryPayload is the registry and the task that scans it.
type ScanRegistryPayload struct {
	Registry *ent.Registry
	Task     *ent.Task
}

// scanning is the input of a task.
type scanning struct{ Registry uuid.UUID }

// ScanRegistry starts a task that reads the tags of a registry. If one has not ended, it returns
// that one.
func (s *Service) ScanRegistry(ctx context.Context, in ScanRegistryInput) (*ScanRegistryPayload, error) {
	r, err := s.changeable(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	t, err := s.enqueue(ctx, r.ID, func(*ent.Registry) bool { return true })
	if err != nil {
		return nil, err
	}
	return &ScanRegistryPayload{Registry: r, Task: t}, nil
}

// enqueue starts a scan of a registry if wanted says so of its locked row.
func (s *Service) enqueue(ctx context.Context, id uuid.UUID, wanted func(*ent.Registry) bool) (t *ent.Task, err error) {
	if s.tasks == nil {
		return nil, problem.Precondition("this manager runs no tasks")
	}
	err = store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		system := viewer.SystemContext(ctx)
		r, err := tx.Registry.Query().Where(registry.ID(id)).ForUpdate().Only(system)
		if err != nil {
			return permit.Missing(err, "registry", "id")
		}
		if !wanted(r) {
			return nil
		}
		t, err = tx.Task.Query().Where(
			enttask.Kind(scanKind), enttask.SubjectID(id), enttask.StatusIn(enttask.StatusWaiting, enttask.StatusRunning),
		).First(system)
		if err != nil && !ent.IsNotFound(err) {
			return fmt.Errorf("look for scans: %w", err)
		}
		if err != nil {
			t, err = s.tasks.Enqueue(ctx, tx, task.Wanted{
				Kind: scanKind, Title: "Scan registry " + r.Name, Input: scanning{id}, Subject: id,
			})
			if err != nil {
				return err
			}
		}
		if r.ScanEvery == 0 {
			return nil
		}
		return r.Update().SetScanDueAt(clock.Now().Add(time.Duration(r.ScanEvery) * time.Second)).Exec(system)
	})
	if err != nil || t == nil {
		return nil, err
	}
	t = t.Unwrap()
	s.tasks.Wake(ctx, t.ID)
	return t, nil
}

// Lead starts the scans that are due until ctx ends. Only the leader runs it.
func (s *Service) Lead(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	tick := clock.NewTicker("registry scans", dueEvery)
	defer tick.Stop()
	for {
		if err := s.startDue(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "start scans of registries", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func due(r *ent.Registry) bool {
	return r.ScanEvery > 0 && (r.ScanDueAt == nil || !r.ScanDueAt.After(clock.Now()))
}

func (s *Service) startDue(ctx context.Context) error {
	ids, err := s.client.Registry.Query().Where(
		registry.ScanEveryGT(0), registry.Or(registry.ScanDueAtIsNil(), registry.ScanDueAtLTE(clock.Now())),
	).Order(registry.ByScanDueAt(sql.OrderNullsFirst())).IDs(ctx)
	if err != nil {
		return fmt.Errorf("look for scans that are due: %w", err)
	}
	for _, id := range ids {
		if _, err := s.enqueue(ctx, id, due); err != nil {
			return err
		}
	}
	return nil
}

// AwaitScan waits for the end of a scan, and returns an error if it failed.
func (s *Service) AwaitScan(ctx context.Context, id uuid.UUID) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		t, err := s.client.Task.Get(ctx, id)
		if err != nil {
			return fmt.Errorf("read task: %w", err)
		}
		switch t.Status {
		case enttask.StatusDone:
			return nil
		case enttask.StatusFailed, enttask.StatusCancelled:
			return problem.Precondition("the scan has the status %s: %s", t.Status, t.Message)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
