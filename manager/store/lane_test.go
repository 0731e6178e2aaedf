package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

// pools connects the lanes to an empty database.
func pools(t *testing.T) (store.Pools, *ent.Client) {
	t.Helper()
	p, err := store.Connect(testenv.Postgres(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, p.Client()
}

// TestLanesDoNotTakeEachOthersConnections uses every connection for requests. The audit log can
// still write, and a request that gets no connection returns UNAVAILABLE.
func TestLanesDoNotTakeEachOthersConnections(t *testing.T) {
	p, client := pools(t)
	ctx := viewer.SystemContext(t.Context())
	for range p[store.Requests].Stats().MaxOpenConnections {
		tx, err := client.Tx(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
	}
	trail := store.On(ctx, store.Audit)
	if _, err := client.ExecContext(trail, "SELECT 1"); err != nil {
		t.Errorf("the audit log has no connection: %v", err)
	}
	soon := store.StatementTimeout(ctx, 50*time.Millisecond)
	if _, err := client.ExecContext(soon, "SELECT 1"); !errdefs.IsUnavailable(err) {
		t.Errorf("a statement without a connection: %v, want UNAVAILABLE", err)
	}
	if _, err := client.Tx(soon); !errdefs.IsUnavailable(err) {
		t.Errorf("a transaction without a connection: %v, want UNAVAILABLE", err)
	}
	gone, leave := context.WithCancel(ctx)
	leave()
	if _, err := client.Tx(gone); err == nil || errdefs.IsUnavailable(err) {
		t.Errorf("a caller whose context ended: %v, want their own error", err)
	}
}

// TestStatementsAreStopped sends statements that take longer than their timeout.
func TestStatementsAreStopped(t *testing.T) {
	p, client := pools(t)
	ctx := viewer.SystemContext(t.Context())
	soon := store.StatementTimeout(ctx, 50*time.Millisecond)
	if _, err := client.ExecContext(soon, "SELECT pg_sleep(600)"); !errdefs.IsUnavailable(err) {
		t.Errorf("outside of a transaction: %v, want UNAVAILABLE", err)
	}
	if rows, err := client.QueryContext(soon, "SELECT pg_sleep(600)"); err == nil {
		for rows.Next() {
			t.Error("it was answered")
		}
		if rows.Err() == nil {
			t.Error("a query by hand has no bound")
		}
		rows.Close()
	} else if !errdefs.IsUnavailable(err) {
		t.Errorf("a query by hand: %v, want UNAVAILABLE", err)
	}
	tx, err := client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(soon, "SELECT pg_sleep(600)"); !errdefs.IsUnavailable(err) {
		t.Errorf("in a transaction: %v, want UNAVAILABLE", err)
	}
	_ = tx.Rollback()
	wait.Until(t, "no statement runs in PostgreSQL", func() bool {
		var running int
		row := p[store.Audit].QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active'")
		if err := row.Scan(&running); err != nil {
			t.Fatal(err)
		}
		return running == 0
	})
	var bound string
	if err := p[store.Requests].QueryRowContext(ctx, "SHOW statement_timeout").Scan(&bound); err != nil || bound != "30s" {
		t.Errorf("statement_timeout is %q (%v), want 30s", bound, err)
	}
}
