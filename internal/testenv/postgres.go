package testenv

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthhq/berth/internal/service/postgres"
)

// recipe changes when clusters of an older postgres.Start can no longer be used.
const recipe = "1"

// server is the one PostgreSQL of this test process. It ends with the process.
var server = sync.OnceValues(func() (*postgres.Server, error) {
	w, err := workPlace()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(w.dir, "postgres")
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	made, err := madeCluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("create cluster for tests: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", made, dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copy cluster: %w: %s", err, out)
	}
	return postgres.Start(ctx, postgres.Config{Dir: dir, Volatile: true, Logger: logger()})
})

// madeCluster returns a cluster that all test processes on this machine copy, because creating one
// takes a second. The first process creates it; the others wait.
func madeCluster(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin, err := os.ReadFile("/etc/postgresql-common/supported_versions")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	key := sha256.Sum256(append(bin, recipe...))
	dir := filepath.Join(cache, "berth-test", fmt.Sprintf("postgres-%x", key[:6]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.RemoveAll(dir + ".new"); err != nil {
		return "", err
	}
	s, err := postgres.Start(ctx, postgres.Config{Dir: dir + ".new", Volatile: true, Logger: logger()})
	if err != nil {
		return "", err
	}
	if err := s.Stop(ctx); err != nil {
		return "", err
	}
	return dir, os.Rename(dir+".new", dir)
}

// Postgres creates an empty database for this test and returns its DSN.
func Postgres(t testing.TB) string {
	t.Helper()
	return database(t, "template1")
}

var templates struct {
	sync.Mutex
	made map[string]error
}

// PostgresFrom creates a database for this test with the contents that prepare has written. prepare
// runs once per name in a test process, on an empty database (migrations belong here); it must
// close its connections.
func PostgresFrom(t testing.TB, name string, prepare func(ctx context.Context, dsn string) error) string {
	t.Helper()
	name = "from_" + name
	templates.Lock()
	defer templates.Unlock()
	err, made := templates.made[name]
	if !made {
		if templates.made == nil {
			templates.made = map[string]error{}
		}
		err = makeTemplate(t.Context(), name, prepare)
		templates.made[name] = err
	}
	if err != nil {
		t.Fatalf("prepare database %s: %v", name, err)
	}
	return database(t, name)
}

func makeTemplate(ctx context.Context, name string, prepare func(context.Context, string) error) error {
	s, err := server()
	if err != nil {
		return err
	}
	if err := create(ctx, s, name, "template1"); err != nil {
		return err
	}
	return prepare(ctx, s.DSN(name))
}

// database creates a database from a template and drops it after the test.
func database(t testing.TB, template string) string {
	t.Helper()
	s, err := server()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test_%d", count.Add(1))
	if err := create(t.Context(), s, name, template); err != nil {
		t.Fatalf("make database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		drop := "DROP DATABASE " + quote(name) + " WITH (FORCE)"
		err := execute(ctx, s, drop)
		for err != nil && strings.Contains(err.Error(), "42501") && ctx.Err() == nil { // autovacuum uses the database, and this user cannot end it
			time.Sleep(50 * time.Millisecond)
			err = execute(ctx, s, drop)
		}
		if err != nil {
			t.Errorf("drop database: %v", err)
		}
	})
	return s.DSN(name)
}

func create(ctx context.Context, s *postgres.Server, name, template string) error {
	return execute(ctx, s, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template)+" STRATEGY FILE_COPY")
}

func execute(ctx context.Context, s *postgres.Server, sql string) error {
	conn, err := pgx.Connect(ctx, s.DSN(postgres.Database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
