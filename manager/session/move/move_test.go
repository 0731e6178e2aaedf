package move

import (
	"context"
	"database/sql"
	"testing"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/leader"
)

// A move is one statement, which waits for locked rows. After the wait, it counts what the
// other transaction has committed, not what was there before.
func TestMoveAfterAnotherTransaction(t *testing.T) {
	const epoch = 7
	client, db := identitytest.Store(t)
	world := identitytest.Fill(t, client)
	ctx := viewer.SystemContext(t.Context())
	if _, err := leader.RaiseFence(ctx, client, epoch, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		other string // statement of the transaction for which the move waits
		moves bool
	}{
		"renamed":      {other: "UPDATE sessions SET name = name || '2', version = version + 1 WHERE id = $1", moves: true},
		"moved":        {other: "UPDATE sessions SET status = 'terminating' WHERE id = $1"},
		"new leader":   {other: "UPDATE fences SET epoch = epoch + 1 WHERE $1::uuid IS NOT NULL"},
		"locked fence": {other: "SELECT FROM fences WHERE $1::uuid IS NOT NULL FOR UPDATE", moves: true},
	} {
		t.Run(name, func(t *testing.T) {
			sess := scheduled(t, world, name)
			now := client.Fence.Query().OnlyX(ctx).Epoch
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(ctx, tt.other, sess.ID); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				done <- Make(ctx, client, Move{To: lifecycle.Preparing, Phase: "prepare", Result: sessionevent.ResultSuccess, Epoch: now}, sess)
			}()
			wait.Until(t, "the move waits", func() bool { return waitsForLock(t, db) })
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; (err == nil) != tt.moves || err != nil && !errdefs.IsAborted(err) {
				t.Errorf("move: %v", err)
			}
			history := client.SessionEvent.Query().Where(sessionevent.SessionID(sess.ID)).CountX(ctx)
			kernel := client.Session.QueryKernels(sess).OnlyX(ctx)
			if moved := history == 1 && kernel.Status == lifecycle.Preparing; moved != tt.moves || !moved && (history > 0 || kernel.Status != sess.Status) {
				t.Errorf("%d lines of history, the kernel is %s", history, kernel.Status)
			}
		})
	}
}

// The entry of a move comes after those of the transaction for which it waited.
func TestMoveIsLastInHistory(t *testing.T) {
	client, db := identitytest.Store(t)
	world := identitytest.Fill(t, client)
	ctx := viewer.SystemContext(t.Context())
	sess := scheduled(t, world, "cancelled")
	sess = sess.Update().SetStatus(lifecycle.Pending).SaveX(ctx)
	tx, err := client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := LockPending(ctx, tx, []uuid.UUID{sess.ID}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- Alone(ctx, client, Move{To: lifecycle.Cancelled, Phase: "terminate", Result: sessionevent.ResultInfo}, sess)
	}()
	wait.Until(t, "the move waits", func() bool { return waitsForLock(t, db) })
	if err := Explain(ctx, tx, []Wait{{Session: sess.ID, Attempt: 1, Why: &report.Pending{Summary: "full"}, News: true}}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	last := client.SessionEvent.Query().Where(sessionevent.SessionID(sess.ID)).Order(sessionevent.ByID(entsql.OrderDesc())).FirstX(ctx)
	if last.ToStatus == nil || *last.ToStatus != lifecycle.Cancelled {
		t.Errorf("the last entry is %v", last)
	}
}

// scheduled stores a session with one kernel.
func scheduled(t *testing.T, world *identitytest.World, name string) *ent.Session {
	t.Helper()
	ctx, client := viewer.SystemContext(t.Context()), world.Client
	group := client.ResourceGroup.Create().SetName(name).SaveX(ctx)
	registry := client.Registry.Create().SetName(name).SetHost(name + ".test").SaveX(ctx)
	image := client.Image.Create().SetReference(name + ".test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(registry).SaveX(ctx)
	s := client.Session.Create().SetName("in " + name).SetType("interactive").SetStatus(lifecycle.Scheduled).SetSlots(nil).
		SetDomain(world.A.Domain).SetProject(world.A.Project).SetOwner(world.A.Member).SetResourceGroup(group).SetImage(image).SaveX(ctx)
	client.Kernel.Create().SetSession(s).SetStatus(s.Status).SetSlots(nil).SetDomainID(s.DomainID).SetProjectID(s.ProjectID).SetOwnerID(s.OwnerID).ExecX(ctx)
	return s
}

// waitsForLock reports whether a statement in the database waits for a row.
func waitsForLock(t *testing.T, db *sql.DB) (waits bool) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits); err != nil {
		t.Fatal(err)
	}
	return waits
}
