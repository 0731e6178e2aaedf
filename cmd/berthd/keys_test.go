package main

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/ent/migrate"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/service/postgres"
	"github.com/berthhq/berth/internal/ticket"
)

// The command as an operator runs it: next to a running berthd up, and with the stores of a
// manager.
func TestRotateKeys(t *testing.T) {
	data := t.TempDir()
	room, secrets := filepath.Join(data, "stores", "postgres"), filepath.Join(data, "secrets")
	for _, dir := range []string{filepath.Dir(room), secrets} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	pg, err := postgres.Start(t.Context(), postgres.Config{Dir: room, Volatile: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Stop(context.Background())
	dsn := pg.DSN(postgres.Database)
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := migrate.Up(t.Context(), db, migrate.Files()); err != nil {
		t.Fatal(err)
	}
	ring, err := seal.Load(secrets)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `INSERT INTO registries (id, created_at, name, host, password_sealed, repositories, mirrors, retention) VALUES ($1, now(), 'r', 'r', $2, '[]', '[]', '[]')`,
		id.New(id.Registry), ring.Seal(seal.RegistryPassword, []byte("secret")))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	note := func() {
		text, err := os.ReadFile(filepath.Join(secrets, "seal.keys"))
		if err != nil || len(strings.Fields(string(text))) != 1 {
			t.Fatalf("the ring is %d bytes: %v", len(text), err)
		}
		keys[string(text)] = true
	}
	note()
	for _, args := range [][]string{{"--data", data}, {"--postgres", dsn, "--secrets", secrets}} {
		cmd := root()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"rotate-keys"}, args...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := "registries.password_sealed: 1 encrypted again\nthe old keys are removed\n"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
		note()
	}
	if len(keys) != 3 {
		t.Errorf("there were %d keys, want 3", len(keys))
	}
	var sealed []byte
	if err := db.QueryRowContext(t.Context(), "SELECT password_sealed FROM registries").Scan(&sealed); err != nil {
		t.Fatal(err)
	}
	if got, err := ring.Open(seal.RegistryPassword, sealed); string(got) != "secret" {
		t.Errorf("the secret is %q, %v", got, err)
	}
	for _, args := range [][]string{nil, {"--data", data, "--secrets", secrets}, {"--data", t.TempDir()}} {
		cmd := root()
		cmd.SetArgs(append([]string{"rotate-keys"}, args...))
		if err := cmd.ExecuteContext(t.Context()); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}

// The command as an operator runs it: for several managers, and next to a running berthd up.
func TestRotateTicketKey(t *testing.T) {
	data := t.TempDir()
	secrets := filepath.Join(data, "secrets")
	if err := os.Mkdir(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ticket.LoadRing(secrets); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := root()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"rotate-ticket-key"}, args...))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, c := range []struct {
		args     []string
		wantText string
		keys     int
	}{
		{[]string{"--secrets", secrets}, "the new key signs from ", 2},
		{[]string{"--data", data, "--after", "2m"}, "tickets of the old one are valid until ", 3},
		{[]string{"--data", data, "--stolen"}, "tickets that were signed with the old keys are no longer valid\n", 1},
	} {
		said, err := run(c.args...)
		ring, lerr := ticket.LoadRing(secrets)
		if err != nil || lerr != nil || !strings.Contains(said, c.wantText) {
			t.Fatalf("%v: %q, %v, %v", c.args, said, err, lerr)
		}
		if n := len(ring.PublicKeys()); n != c.keys {
			t.Errorf("%v: %d keys count, want %d", c.args, n, c.keys)
		}
	}
	for _, args := range [][]string{nil, {"--data", data, "--secrets", secrets}, {"--data", t.TempDir()}, {"--data", data, "--after", "-1s"}} {
		if said, err := run(args...); err == nil {
			t.Errorf("%v is accepted: %s", args, said)
		}
	}
}
