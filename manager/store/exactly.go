package store

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent"
)

// Exactly fails with Aborted unless the statement changes n rows.
func Exactly(ctx context.Context, tx *ent.Tx, n int, query string, args ...any) error {
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	switch changed, err := res.RowsAffected(); {
	case err != nil:
		return err
	case changed != int64(n):
		return fmt.Errorf("%d of %d rows: %w", changed, n, errdefs.ErrAborted)
	}
	return nil
}
