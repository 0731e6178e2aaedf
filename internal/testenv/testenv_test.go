package testenv_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
)

func query(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var out string
	if err := conn.QueryRow(t.Context(), sql).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	prepared := 0
	prepare := func(ctx context.Context, dsn string) error {
		prepared++
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "CREATE TABLE word (v text); INSERT INTO word VALUES ('as prepared')")
		return err
	}
	words := fmt.Sprintf("words%d", time.Now().UnixNano()) // differs between runs with -count 2
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			dsn := testenv.PostgresFrom(t, words, prepare)
			t.Logf("database in %v", time.Since(begun).Round(time.Millisecond))
			if got := query(t, dsn, "UPDATE word SET v = v || '!' RETURNING v"); got != "as prepared!" {
				t.Errorf("word is %q, want %q", got, "as prepared!")
			}
		})
	}
	if prepared != 1 {
		t.Errorf("prepared %d times, want once", prepared)
	}
}

func TestRedisIsEmpty(t *testing.T) {
	for range 2 {
		begun := time.Now()
		opt, err := goredis.ParseURL(testenv.Redis(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("redis in %v", time.Since(begun).Round(time.Millisecond))
		c := goredis.NewClient(opt)
		defer c.Close()
		if n, err := c.Incr(t.Context(), "n").Result(); err != nil || n != 1 {
			t.Errorf("counter is %d (%v), want 1", n, err)
		}
	}
}

func TestEtcdIsEmpty(t *testing.T) {
	for range 2 {
		begun := time.Now()
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{testenv.Etcd(t)}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		t.Logf("etcd in %v", time.Since(begun).Round(time.Millisecond))
		res, err := c.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || res.Count != 0 {
			t.Errorf("keys: %d (%v), want none", res.Count, err)
		}
	}
}

const holdEnv = "BERTH_TEST_HOLD"

// TestHold is the process that TestNothingIsLeftOfAKilledProcess kills.
func TestHold(t *testing.T) {
	if os.Getenv(holdEnv) == "" {
		t.Skip("runs inside another test")
	}
	testenv.Postgres(t)
	testenv.Redis(t)
	testenv.Etcd(t)
	fmt.Println("holding")
	select {}
}

func TestNothingIsLeftOfAKilledProcess(t *testing.T) {
	tmp := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHold$")
	cmd.Env = append(os.Environ(), holdEnv+"=1", "TMPDIR="+tmp)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said string
	if _, err := fmt.Fscan(out, &said); err != nil || said != "holding" {
		rest, _ := io.ReadAll(out)
		t.Fatalf("said %q (%v): %s", said, err, rest)
	}
	if n := len(processesIn(t, tmp)); n < 2 {
		t.Errorf("%d processes work in %s, want PostgreSQL and Redis at least", n, tmp)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	wait.For(t, func() error {
		left, _ := filepath.Glob(filepath.Join(tmp, "*"))
		running := processesIn(t, tmp)
		if len(left)+len(running) > 0 {
			return fmt.Errorf("left behind: files %q, processes %q", left, running)
		}
		return nil
	})
}

// processesIn lists the processes that have a directory below dir open or as
// their working directory.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	links, err := filepath.Glob("/proc/[0-9]*/fd/3")
	if err != nil {
		t.Fatal(err)
	}
	cwds, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range append(links, cwds...) {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, dir+"/") {
			found = append(found, strings.Split(l, "/")[2])
		}
	}
	return found
}
