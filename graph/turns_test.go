package graph_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/managertest"
)

// A user who sends 50 slow queries at once gets only a share of the database connections, so that
// other users are served. Queries above a limit are rejected.
func TestFloodOfQueries(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	w.Configure = func(c *manager.Config) { c.QueryTimeout = managertest.Timeout }
	m := w.Start(t)
	flooder, other := m.As(t, w.A.Member), m.As(t, w.B.Member)
	other.Must(t, `{ viewer { user { id } } }`, nil, nil)
	ctx := w.System(t)
	tx, err := w.Client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "LOCK TABLE audit_entries IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	const sent, runAtOnce, connections = 50, 20, 3
	answers := make(chan managertest.Errors, sent)
	for range sent {
		go func() {
			answers <- flooder.Ask(t, `{ a: activity(first: 1) { totalCount } b: activity(first: 2) { totalCount } }`, nil, nil)
		}()
	}
	for range sent - runAtOnce {
		select {
		case errs := <-answers:
			if errs.Code() != "RESOURCE_EXHAUSTED" || !strings.Contains(errs[0].Message, "20 of your requests") {
				t.Fatalf("one beyond the number: %v", errs)
			}
		case <-time.After(managertest.Timeout):
			t.Fatal("those beyond the number wait")
		}
	}
	stuck := func() (n int) {
		rows, err := w.Client.QueryContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'SELECT%audit_entries%'`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(&n); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	managertest.Eventually(t, "the share is used", func() bool { return stuck() >= connections })
	if n := stuck(); n > connections {
		t.Errorf("one person uses %d connections, want %d", n, connections)
	}
	soon, cancel := context.WithTimeout(t.Context(), managertest.Timeout)
	defer cancel()
	for range 5 {
		done := make(chan struct{})
		go func() { other.Must(t, `{ viewer { user { id } } }`, nil, nil); close(done) }()
		select {
		case <-done:
		case <-answers:
			t.Fatal("the slow queries had their answers before the other person had one")
		case <-soon.Done():
			t.Fatal("the other person has no answer")
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for range runAtOnce {
		if errs := <-answers; len(errs) > 0 {
			t.Errorf("one of those within the number: %v", errs)
		}
	}
	flooder.Must(t, `{ activity(first: 1) { totalCount } }`, nil, nil)
}
