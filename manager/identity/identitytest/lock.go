package identitytest

import (
	"database/sql"
	"testing"
	"time"
)

// Lock blocks statements that use a table until unlock is called. wait returns when a statement is
// blocked.
func Lock(t testing.TB, db *sql.DB, table string) (unlock, hangs func()) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `LOCK TABLE "`+table+`" IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	unlock = func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
	return unlock, func() {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			waits := false
			err := db.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = $1::regclass)`, table).Scan(&waits)
			switch {
			case err != nil:
				t.Fatal(err)
			case waits:
				return
			case time.Now().After(end):
				t.Fatal("no statement waits for the lock")
			}
		}
	}
}
