// Package store is the manager's access to PostgreSQL: connection pools, transactions, and locks
// for rules that constraints on rows cannot enforce.
package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/berthhq/berth/ent"
)

// InTx runs f in a transaction and commits when it returns nil.
func InTx(ctx context.Context, client *ent.Client, f func(tx *ent.Tx) error) error {
	tx, err := client.Tx(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Lock waits for locks with these names and holds them until the transaction ends. Locks are taken
// in one order, so that two callers never deadlock.
func Lock(ctx context.Context, tx *ent.Tx, names ...string) error {
	names = slices.Sorted(slices.Values(names))
	for _, name := range slices.Compact(names) {
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name); err != nil {
			return fmt.Errorf("lock %s: %w", name, err)
		}
	}
	return nil
}
