package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/berthhq/berth/internal/service"
	"github.com/berthhq/berth/internal/service/postgres"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// holdEnv makes a test binary run the stores of a directory until it is killed.
const holdEnv = "BERTH_TEST_HOLD_STORES"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		hold(dir)
	}
	os.Exit(m.Run())
}

func hold(dir string) {
	s, err := service.Start(context.Background(), config(dir))
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println("pids", s.Postgres.PID(), s.Redis.PID())
	select {}
}

func config(dir string) service.Config {
	return service.Config{Dir: dir, Volatile: true, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
}

func start(t *testing.T, dir string) *service.Stores {
	t.Helper()
	begun := time.Now()
	s, err := service.Start(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(begun).Round(time.Millisecond))
	return s
}

// timeout bounds every wait, also on a machine that has other things to do.
const timeout = 2 * time.Minute

func stop(t *testing.T, s *service.Stores) {
	t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
	t.Logf("stopped in %v", time.Since(begun).Round(time.Millisecond))
}

// put writes through the same clients that the product uses.
func put(t *testing.T, s *service.Stores, v string) {
	t.Helper()
	ctx := t.Context()
	pg, err := pgx.Connect(ctx, s.Postgres.DSN("berth"))
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close(ctx)
	if _, err := pg.Exec(ctx, "CREATE TABLE IF NOT EXISTS kept (v text)"); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(ctx, "INSERT INTO kept VALUES ($1)", v); err != nil {
		t.Fatal(err)
	}
	ec := etcdClient(t, s)
	defer ec.Close()
	if _, err := ec.Put(ctx, "kept", v); err != nil {
		t.Fatal(err)
	}
	opt, err := goredis.ParseURL(s.Redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	rc := goredis.NewClient(opt)
	defer rc.Close()
	if err := rc.Set(ctx, "kept", v, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
}

// check reads what an earlier run of the stores has written.
func check(t *testing.T, s *service.Stores, want string) {
	t.Helper()
	ctx := t.Context()
	pg, err := pgx.Connect(ctx, s.Postgres.DSN("berth"))
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close(ctx)
	var got string
	if err := pg.QueryRow(ctx, "SELECT v FROM kept").Scan(&got); err != nil || got != want {
		t.Errorf("postgres kept %q (%v), want %q", got, err, want)
	}
	ec := etcdClient(t, s)
	defer ec.Close()
	res, err := ec.Get(ctx, "kept")
	if err != nil || len(res.Kvs) != 1 || string(res.Kvs[0].Value) != want {
		t.Errorf("etcd kept %v (%v), want %q", res, err, want)
	}
}

func etcdClient(t *testing.T, s *service.Stores) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Etcd.Endpoint()}, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStoresKeepTheirDataOverARestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	put(t, s, "one")
	if _, err := service.Start(t.Context(), config(dir)); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("second process on the same directory: %v, want failed precondition", err)
	}
	stop(t, s)

	s = start(t, dir)
	defer stop(t, s)
	check(t, s, "one")
}

// Another process finds the database of a running one, and none without one.
func TestTheDatabaseIsFound(t *testing.T) {
	for name, dir := range map[string]string{
		"short": t.TempDir(),
		"long":  filepath.Join(t.TempDir(), strings.Repeat("x", 100)),
	} {
		t.Run(name, func(t *testing.T) {
			room := filepath.Join(dir, "postgres")
			if _, _, err := postgres.Find(room); err == nil {
				t.Error("found before it runs")
			}
			s := start(t, dir)
			defer stop(t, s)
			dsn, forget, err := postgres.Find(room)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(conn.Close(t.Context()), forget()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLongDirectoryNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	s := start(t, dir)
	defer stop(t, s)
	put(t, s, "far away")
	check(t, s, "far away")
}

func TestStoresComeBackAfterTheirParentWasKilled(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pg, redis int
	if _, err := fmt.Fscanf(out, "pids %d %d\n", &pg, &redis); err != nil {
		rest, _ := io.ReadAll(out)
		t.Fatalf("holder did not start: %v %s", err, rest)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	s := start(t, dir)
	defer stop(t, s)
	put(t, s, "after the kill")
	for _, pid := range []int{pg, redis} {
		if err := waitGone(pid); err != nil {
			t.Error(err)
		}
	}
}

func TestAChildThatDiesIsStartedAgain(t *testing.T) {
	s := start(t, t.TempDir())
	defer stop(t, s)
	put(t, s, "before")
	old := s.Postgres.PID()
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait.For(t, func() error {
		pg, err := pgx.Connect(t.Context(), s.Postgres.DSN("berth"))
		if err != nil {
			return err
		}
		pg.Close(t.Context())
		if pid := s.Postgres.PID(); pid == old || pid == 0 {
			return fmt.Errorf("process %d serves", pid)
		}
		return nil
	})
	check(t, s, "before")
}

func waitGone(pid int) error {
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return nil
		}
	}
	return fmt.Errorf("process %d is still there", pid)
}
