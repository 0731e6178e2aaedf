package task

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/viewer"
)

// Progress is one run of a task.
type Progress struct {
	s      *Service
	task   *ent.Task
	epoch  int64
	remark string
}

// Remark sets a message for users of a task that succeeds, such as a list of omissions.
func (p *Progress) Remark(text string) { p.remark = text }

// By returns the user who enqueued the task; zero for the system.
func (p *Progress) By() uuid.UUID {
	if p.task.CreatorID == nil {
		return uuid.Nil
	}
	return *p.task.CreatorID
}

// Again reports whether this is not the task's first run. An interrupted run may have done
// more than it saved.
func (p *Progress) Again() bool { return p.task.Attempt > 1 || len(p.task.State) > 0 }

// Epoch returns the epoch of the leader that runs the task, for agents.
func (p *Progress) Epoch() int64 { return p.epoch }

// InTx runs f in a transaction in which the task is neither cancelled nor taken by another leader.
func (p *Progress) InTx(ctx context.Context, f func(ctx context.Context, tx *ent.Tx) error) error {
	ctx = viewer.SystemContext(ctx)
	return p.s.fenced(ctx, p.epoch, func(tx *ent.Tx) error {
		_, err := tx.Task.Query().Where(task.ID(p.task.ID), task.StatusEQ(task.StatusRunning)).ForUpdate().Only(ctx)
		if ent.IsNotFound(err) {
			return errStopped
		}
		if err != nil {
			return fmt.Errorf("lock task %s: %w", p.task.ID, err)
		}
		return f(ctx, tx)
	})
}

// State decodes the last saved state into v, and does not change v before the first save.
func (p *Progress) State(v any) error {
	if len(p.task.State) == 0 {
		return nil
	}
	if err := json.Unmarshal(p.task.State, v); err != nil {
		return fmt.Errorf("read state of task %s: %w", p.task.ID, err)
	}
	return nil
}

// Save stores the state to continue from, as JSON, and the progress. A later run may count
// only the remaining work. After an error, the run must end: the task was cancelled or another
// leader has it.
func (p *Progress) Save(ctx context.Context, state any, done, total int64) error {
	done, total = p.onward(done, total)
	b, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	if err := p.update(ctx, func(up *ent.TaskUpdate) { up.SetState(b).SetDone(done).SetTotal(total) }); err != nil {
		return err
	}
	p.task.State, p.task.Done, p.task.Total = b, done, total
	p.s.Wake(ctx, p.task.ID)
	return nil
}

// onward makes sure that the reported progress never decreases.
func (p *Progress) onward(done, total int64) (int64, int64) {
	if was := p.task.Total; total == 0 { // not known yet
		done, total = 0, was
	} else if total < was {
		done, total = done+was-total, was
	}
	return max(done, p.task.Done), total
}

func (p *Progress) update(ctx context.Context, set func(*ent.TaskUpdate)) error {
	return p.s.fenced(viewer.SystemContext(ctx), p.epoch, func(tx *ent.Tx) error {
		up := tx.Task.Update().Where(task.ID(p.task.ID), task.StatusEQ(task.StatusRunning))
		set(up)
		n, err := up.Save(viewer.SystemContext(ctx))
		if err == nil && n == 0 {
			return errStopped
		}
		return err
	})
}
