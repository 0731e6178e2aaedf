package migrate_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/berthhq/berth/ent/migrate"
	"github.com/berthhq/berth/internal/testenv"
)

func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// What the migrations make is what ent/schema describes. When this fails, run
// make migration.
func TestMigrationsMakeTheSchema(t *testing.T) {
	db := open(t)
	if err := migrate.Up(t.Context(), db, migrate.Files()); err != nil {
		t.Fatal(err)
	}
	var diff bytes.Buffer
	s := migrate.NewSchema(entsql.OpenDB(dialect.Postgres, db))
	if err := s.WriteTo(t.Context(), &diff, migrate.WithDropColumn(true), migrate.WithDropIndex(true)); err != nil {
		t.Fatal(err)
	}
	if diff.Len() > 0 {
		t.Errorf("still missing:\n%s", &diff)
	}
	want := map[string]bool{"schema_migrations": true}
	for _, table := range migrate.Tables {
		want[table.Name] = true
	}
	rows, err := db.QueryContext(t.Context(), "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if !want[name] {
			t.Errorf("table %s is no entity's", name)
		}
	}
}

func TestTheDiffSeesAMissingColumn(t *testing.T) {
	db := open(t)
	if err := migrate.Up(t.Context(), db, migrate.Files()); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{"ALTER TABLE sessions DROP COLUMN priority", "DROP INDEX session_owner_id_name", "ALTER TABLE users ADD COLUMN secret text"} {
		if _, err := db.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	var diff bytes.Buffer
	s := migrate.NewSchema(entsql.OpenDB(dialect.Postgres, db))
	if err := s.WriteTo(t.Context(), &diff, migrate.WithDropColumn(true), migrate.WithDropIndex(true)); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"priority"`, `"session_owner_id_name"`, `"secret"`} {
		if !bytes.Contains(diff.Bytes(), []byte(part)) {
			t.Errorf("no %s in\n%s", part, &diff)
		}
	}
}

func files(texts ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i, text := range texts {
		m[fmt.Sprintf("%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

const (
	one = "CREATE TABLE a (n int); INSERT INTO a VALUES (1);"
	two = "UPDATE a SET n = n + 1;"
)

func value(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT n FROM a").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEachMigrationRunsOnce(t *testing.T) {
	db := open(t)
	if err := migrate.Up(t.Context(), db, files(one)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := migrate.Up(t.Context(), db, files(one, two)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := value(t, db); n != 2 {
		t.Errorf("n is %d, want 2", n)
	}
}

func TestAFailedMigrationLeavesNothing(t *testing.T) {
	db := open(t)
	if err := migrate.Up(t.Context(), db, files(one, two+"CREATE TABLE b (n int); SELECT 1/0;")); err == nil {
		t.Fatal("a division by zero is no error")
	}
	if n := value(t, db); n != 1 {
		t.Errorf("n is %d, want 1: half of the migration was kept", n)
	}
	// The first one is there, and the second goes on when it has been mended.
	if err := migrate.Up(t.Context(), db, files(one, two)); err != nil {
		t.Fatal(err)
	}
	if n := value(t, db); n != 2 {
		t.Errorf("n is %d, want 2", n)
	}
}

func TestAnotherPastIsRefused(t *testing.T) {
	db := open(t)
	if err := migrate.Up(t.Context(), db, files(one, two)); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]fstest.MapFS{
		"a database of a newer release": files(one),
		"a text that was changed":       files(one, two+" "),
		"a gap":                         {"0001_a.sql": {}, "0003_b.sql": {}},
		"no number":                     {"first.sql": {}},
	} {
		err := migrate.Up(t.Context(), db, f)
		if !errdefs.IsFailedPrecondition(err) && !errdefs.IsInvalidArgument(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := value(t, db); n != 2 {
		t.Errorf("n is %d, want 2", n)
	}
}
