package migrate_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"
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
			t.Errorf("table %s belongs to no entity", name)
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
		t.Fatal("a division by zero is not an error")
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

// upTo applies the migrations before one.
func upTo(t *testing.T, db *sql.DB, before string) {
	t.Helper()
	all, err := fs.Glob(migrate.Files(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	some := fstest.MapFS{}
	for _, name := range all {
		if name >= before {
			continue
		}
		text, err := fs.ReadFile(migrate.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		some[name] = &fstest.MapFile{Data: text}
	}
	if err := migrate.Up(t.Context(), db, some); err != nil {
		t.Fatal(err)
	}
}

// bare lets the tables have rows of only the columns that a migration reads, and
// returns a function that executes a statement.
func bare(t *testing.T, db *sql.DB, tables ...string) (run func(text string, args ...any)) {
	t.Helper()
	run = func(text string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range tables {
		var columns string
		if err := db.QueryRowContext(t.Context(), `SELECT string_agg(column_name, ',') FROM information_schema.columns
			WHERE table_name = $1 AND is_nullable = 'NO' AND column_name <> 'id'`, table).Scan(&columns); err != nil {
			t.Fatal(err)
		}
		for c := range strings.SplitSeq(columns, ",") {
			run(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %q DROP NOT NULL", table, c))
		}
	}
	return run
}

// Rows that allow inference sessions lose that type; what allowed nothing else is switched off.
func TestInferenceIsRemovedFromRows(t *testing.T) {
	db := open(t)
	upTo(t, db, "0021")
	run := bare(t, db, "resource_groups", "idle_checkers")
	for _, types := range []string{`["interactive", "batch", "inference"]`, `["inference"]`, `["batch"]`} {
		run("INSERT INTO resource_groups (id, name, session_types, active) VALUES (gen_random_uuid(), $1::text, $1::jsonb, true)", types)
		run("INSERT INTO idle_checkers (id, name, session_types, enabled) VALUES (gen_random_uuid(), $1::text, $1::jsonb, true)", types)
	}
	one, err := fs.ReadFile(migrate.Files(), "0021_no_inference_sessions.sql")
	if err != nil {
		t.Fatal(err)
	}
	run(string(one))
	for table, column := range map[string]string{"resource_groups": "active", "idle_checkers": "enabled"} {
		only := `["interactive", "batch"]`
		if table == "idle_checkers" {
			only = `["interactive"]`
		}
		for before, want := range map[string]string{
			`["interactive", "batch", "inference"]`: `["interactive", "batch"] true`, `["inference"]`: only + " false", `["batch"]`: `["batch"] true`,
		} {
			var got string
			if err := db.QueryRowContext(t.Context(), fmt.Sprintf("SELECT session_types::text || ' ' || %s FROM %s WHERE name = $1", column, table), before).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s that allowed %s: %s, want %s", table, before, got, want)
			}
		}
	}
}

// A session that a policy ended is renamed, and one whose start took too long is not.
func TestTheEndOfALifetimeIsRenamed(t *testing.T) {
	db := open(t)
	upTo(t, db, "0018")
	run := bare(t, db, "sessions", "session_events")
	ids := map[string]string{"session_lifetime": "00000000-0000-0000-0000-000000000001", "deadline": "00000000-0000-0000-0000-000000000002"}
	for code, id := range ids {
		run("INSERT INTO sessions (id, termination_reason) VALUES ($1, 'deadline_exceeded')", id)
		run("INSERT INTO session_events (id, session_id, code) VALUES (gen_random_uuid(), $1, $2), (gen_random_uuid(), $1, 'deadline_exceeded')", id, code)
	}
	one, err := fs.ReadFile(migrate.Files(), "0018_ends_of_lifetimes_and_removed_registries.sql")
	if err != nil {
		t.Fatal(err)
	}
	run(string(one))
	for code, want := range map[string]string{"session_lifetime": "lifetime lifetime,lifetime", "deadline": "deadline_exceeded deadline,deadline_exceeded"} {
		var reason, now string
		if err := db.QueryRowContext(t.Context(), `SELECT s.termination_reason,
			(SELECT string_agg(e.code, ',' ORDER BY e.code) FROM session_events e WHERE e.session_id = s.id) FROM sessions s WHERE s.id = $1`, ids[code]).Scan(&reason, &now); err != nil {
			t.Fatal(err)
		}
		if got := reason + " " + now; got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
}

// Roles keep their rights under the names that replace special and write.
func TestOperationsOfRolesAreNamed(t *testing.T) {
	db := open(t)
	upTo(t, db, "0022")
	run := bare(t, db, "roles")
	roles := map[string]string{
		`{"session": ["read", "delete", "special"]}`: `{"session": ["read", "delete", "enter"]}`,
		`{"vfolder": ["special", "write"]}`:          `{"vfolder": ["read_files", "write_files"]}`,
		`{"user": ["special"], "role": ["special"], "project": ["special"], "object_storage": ["special"]}`: `{"role": ["grant"], ` +
			`"user": ["impersonate"], "project": ["manage_members"], "object_storage": ["transfer"]}`,
		`{"image": ["read", "special", "write"], "agent": ["special"], "volume": ["special"]}`: `{"image": ["read"], "volume": ["grant"]}`,
		`{"image": ["write"]}`:                    `{}`,
		`{"resource_group": ["read", "special"]}`: `{"resource_group": ["read", "grant"]}`,
		`{"session": ["read", "create"]}`:         `{"session": ["read", "create"]}`,
	}
	for before := range roles {
		run("INSERT INTO roles (id, name, permissions) VALUES (gen_random_uuid(), $1::text, $1::jsonb)", before)
	}
	one, err := fs.ReadFile(migrate.Files(), "0022_named_operations.sql")
	if err != nil {
		t.Fatal(err)
	}
	run(string(one))
	for before, want := range roles {
		var got string
		if err := db.QueryRowContext(t.Context(), "SELECT permissions::text FROM roles WHERE name = $1", before).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s became %s, want %s", before, got, want)
		}
	}
}
