package leader

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/fence"
)

// FenceName is the row that holds the epoch of the leader.
const FenceName = "leader"

// Fence makes the transaction fail unless epoch is still the newest: a leader
// that was replaced without noticing changes nothing.
func Fence(ctx context.Context, tx *ent.Tx, epoch int64) error {
	f, err := tx.Fence.Query().Where(fence.Name(FenceName)).ForShare().Only(ctx)
	if err != nil {
		return fmt.Errorf("read fence: %w", err)
	}
	if f.Epoch != epoch {
		return replaced(epoch, f.Epoch)
	}
	return nil
}

// Fenced returns Aborted if epoch is not the newest.
func Fenced(ctx context.Context, client *ent.Client, epoch int64) error {
	f, err := client.Fence.Query().Where(fence.Name(FenceName)).Only(ctx)
	if err != nil {
		return fmt.Errorf("read fence: %w", err)
	}
	if f.Epoch != epoch {
		return replaced(epoch, f.Epoch)
	}
	return nil
}

func replaced(epoch, by int64) error {
	return fmt.Errorf("epoch %d was replaced by %d: %w", epoch, by, errdefs.ErrAborted)
}

// RaiseFence begins a leader's epoch and returns it: atLeast, or one more than the last epoch where
// that is not below atLeast. While the row is locked, confirm checks in the election whether the
// caller still leads, so that of two managers that claim to lead, the one elected last has the
// higher epoch.
func RaiseFence(ctx context.Context, client *ent.Client, atLeast int64, confirm func(context.Context) error) (epoch int64, err error) {
	err = client.Fence.Create().SetName(FenceName).SetEpoch(0).OnConflictColumns(fence.FieldName).Ignore().Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("create fence: %w", err)
	}
	tx, err := client.Tx(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	f, err := tx.Fence.Query().Where(fence.Name(FenceName)).ForUpdate().Only(ctx)
	if err != nil {
		return 0, fmt.Errorf("read fence: %w", err)
	}
	if err := confirm(ctx); err != nil {
		return 0, fmt.Errorf("raise the fence above epoch %d: %w", f.Epoch, err)
	}
	epoch = max(atLeast, f.Epoch+1)
	if err := tx.Fence.UpdateOne(f).SetEpoch(epoch).Exec(ctx); err != nil {
		return 0, fmt.Errorf("raise fence: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("raise fence: %w", err)
	}
	return epoch, nil
}
