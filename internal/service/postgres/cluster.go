package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/service/proc"
)

// A server of a process that died needs a moment for its checkpoint before it ends; after this time
// it is killed.
const (
	evictPolitely = 10 * time.Second
	evictFirmly   = 3 * time.Second
)

// cluster is the data directory with the configuration of its server.
type cluster struct {
	bin      string
	room     *proc.Room
	volatile bool
	logger   *slog.Logger
}

// findBin returns the newest installed directory of server programs.
func findBin() (string, error) {
	for _, v := range []string{"18", "17", "16", "15"} {
		dir := filepath.Join("/usr/lib/postgresql", v, "bin")
		if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
			return dir, nil
		}
	}
	if p, err := exec.LookPath("postgres"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			return filepath.Dir(p), nil
		}
	}
	return "", fmt.Errorf("start postgresql: no server programs found (run make setup): %w", errdefs.ErrFailedPrecondition)
}

func (c *cluster) data() string { return filepath.Join(c.room.Path(), "data") }

// init creates the cluster under a temporary name, so that an incomplete one is never used.
func (c *cluster) init(ctx context.Context) error {
	if _, err := os.Stat(c.data()); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stat postgresql cluster: %w", err)
	}
	fresh := c.data() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("create postgresql cluster: %w", err)
	}
	if err := c.initdb(ctx); err != nil {
		return fmt.Errorf("create postgresql cluster: %w", err)
	}
	if err := c.admit(fresh); err != nil {
		return fmt.Errorf("create postgresql cluster: %w", err)
	}
	if err := os.Rename(fresh, c.data()); err != nil {
		return fmt.Errorf("create postgresql cluster: %w", err)
	}
	return nil
}

func (c *cluster) initdb(ctx context.Context) error {
	args := []string{
		"-D", proc.RoomPath + "/data.new", "-U", superuser, "--no-instructions",
		"--encoding=UTF8", "--locale=C.UTF-8", "--auth-local=peer", "--auth-host=reject", "--wal-segsize=4",
	}
	if c.volatile {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), args...)
	if err := c.room.Enter(cmd); err != nil {
		return err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := proc.StartChild(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}

// admit allows only the system user of this process to log in as its role and as the superuser.
func (c *cluster) admit(dir string) error {
	var ident strings.Builder
	for _, role := range []string{Database, superuser} {
		fmt.Fprintf(&ident, "berth %q %s\n", c.room.Us(), role)
	}
	files := map[string]string{
		"pg_hba.conf":   "local all all peer map=berth\n",
		"pg_ident.conf": ident.String(),
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if err := c.room.Own(path); err != nil {
			return err
		}
	}
	return nil
}

// connections limits the clients: a platform has a handful, and so has each of many concurrent
// tests.
func (c *cluster) connections() string {
	if c.volatile {
		return "800" // of many tests at once
	}
	return "60"
}

// command runs the server in the foreground. Settings are arguments, so that a new version of Berth
// can change them without changing files.
func (c *cluster) command() (*exec.Cmd, error) {
	settings := []string{
		"listen_addresses=", "unix_socket_directories=" + proc.RoomPath, "unix_socket_permissions=0700",
		"shared_buffers=32MB", "max_connections=" + c.connections(), "work_mem=8MB", "maintenance_work_mem=32MB",
		"huge_pages=off", "jit=off", "max_parallel_workers_per_gather=0",
		"wal_level=minimal", "max_wal_senders=0", "max_logical_replication_workers=0", "min_wal_size=16MB", "max_wal_size=256MB",
		"timezone=UTC", "log_timezone=UTC", "log_min_messages=log", "log_min_error_statement=panic", "log_line_prefix=", "log_checkpoints=off",
	}
	if c.volatile {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	args := []string{"-D", proc.RoomPath + "/data"}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	cmd := exec.Command(filepath.Join(c.bin, "postgres"), args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	return cmd, c.room.Enter(cmd)
}

// evict ends a server that still runs on the directory because its parent has just been killed, and
// removes the lock files of a server that has ended, whose process id may belong to another process
// now.
func (c *cluster) evict() error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{0, evictPolitely}, {syscall.SIGQUIT, evictFirmly}, {syscall.SIGKILL, evictFirmly}} {
		pid := c.owner()
		if pid == 0 {
			break
		}
		if step.signal != 0 {
			c.logger.Warn("ending a PostgreSQL left behind", "pid", pid, "signal", step.signal.String())
			_ = syscall.Kill(pid, step.signal)
		}
		for end := time.Now().Add(step.wait); c.owner() == pid && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if pid := c.owner(); pid != 0 {
		return fmt.Errorf("postgresql %d still runs in %s: %w", pid, c.data(), errdefs.ErrFailedPrecondition)
	}
	for _, f := range []string{"data/postmaster.pid", socket, socket + ".lock"} {
		if err := os.Remove(filepath.Join(c.room.Path(), f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear stale lock: %w", err)
		}
	}
	return nil
}

// owner returns the process id of a live postmaster on the directory: the one in the lock file, if
// the working directory of that process is the directory.
func (c *cluster) owner() int {
	b, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 {
		return 0
	}
	cwd, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return 0
	}
	data, err := os.Stat(c.data())
	if err != nil || !os.SameFile(cwd, data) {
		return 0
	}
	return pid
}
