package accelerator_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var mock string // the path of the mock plugin

func TestMain(m *testing.M) {
	if path := os.Getenv("TEST_BE_HOST"); path != "" {
		beHost(path)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "accelerator")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		mock = filepath.Join(dir, "mock")
		if out, err := exec.Command("go", "build", "-o", mock, "./mock").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build mock: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// beHost launches a plugin, prints its pid and waits to be killed.
func beHost(path string) {
	c, err := accelerator.Launch(context.Background(), accelerator.Options{Path: path}, &pb.DescribeRequest{})
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Pid())
	select {}
}

func launch(t *testing.T, o accelerator.Options) *accelerator.Client {
	t.Helper()
	if o.Path == "" {
		o.Path = mock
	}
	c, err := accelerator.Launch(t.Context(), o, &pb.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// gone waits until a process has exited and is not a zombie of the test.
func gone(t *testing.T, pid int) {
	t.Helper()
	wait.For(t, func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return nil
		}
		return fmt.Errorf("process %d still exists: %s", pid, stat)
	})
}

func TestLaunchAndClose(t *testing.T) {
	dir := t.TempDir()
	c := launch(t, accelerator.Options{SocketDir: dir})
	if c.Description.GetKey() != "mock" || c.Version() != accelerator.Contract().Newest() {
		t.Errorf("got %v, version %d", c.Description.GetKey(), c.Version())
	}
	sockets, err := os.ReadDir(dir)
	if err != nil || len(sockets) != 1 {
		t.Fatalf("socket directories: %v, %v", sockets, err)
	}
	if info, _ := sockets[0].Info(); info.Mode().Perm() != 0o700 {
		t.Errorf("socket directory has mode %v", info.Mode())
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	gone(t, c.Pid())
	select {
	case <-c.Done():
	default:
		t.Error("Done is open after Close")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := c.Ping(t.Context()); err == nil {
		t.Error("a closed plugin answered")
	}
}

func TestChecksum(t *testing.T) {
	raw, err := os.ReadFile(mock)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	launch(t, accelerator.Options{SHA256: hex.EncodeToString(sum[:])})
	sum[0]++
	other := hex.EncodeToString(sum[:])
	if _, err := accelerator.Launch(t.Context(), accelerator.Options{Path: mock, SHA256: other}, &pb.DescribeRequest{}); !errors.Is(err, accelerator.ErrChecksum) {
		t.Errorf("another program: %v", err)
	}
	for _, bad := range []string{"abcd", "nonsense"} {
		if _, err := accelerator.Launch(t.Context(), accelerator.Options{Path: mock, SHA256: bad}, &pb.DescribeRequest{}); err == nil {
			t.Errorf("checksum %q was accepted", bad)
		}
	}
}

func TestNotAPlugin(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"/no/such/file", "/bin/true", "/etc/passwd"} {
		_, err := accelerator.Launch(t.Context(), accelerator.Options{Path: path, SocketDir: dir}, &pb.DescribeRequest{})
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names it", path, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestEnvironmentIsNotInherited(t *testing.T) {
	t.Setenv("BERTH_SECRET", "hunter2")
	c := launch(t, accelerator.Options{Env: []string{"GIVEN=1"}})
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(env, []byte("hunter2")) || !bytes.Contains(env, []byte("GIVEN=1")) {
		t.Errorf("environment is %q", env)
	}
}

func TestPluginDiesWithKilledHost(t *testing.T) {
	host := exec.Command(os.Args[0])
	host.Env = append(os.Environ(), "TEST_BE_HOST="+mock, "TMPDIR="+t.TempDir())
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	_ = host.Process.Kill()
	_ = host.Wait()
	gone(t, pid)
}

func TestPluginOutlivesItsLauncherThread(t *testing.T) {
	launched := make(chan *accelerator.Client)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		c, err := accelerator.Launch(context.Background(), accelerator.Options{Path: mock}, &pb.DescribeRequest{})
		if err != nil {
			t.Error(err)
		}
		launched <- c
	}()
	c := <-launched
	defer c.Close()
	select {
	case <-c.Done():
		t.Error("the plugin died with the thread that started it")
	case <-time.After(300 * time.Millisecond):
	}
}

func TestCrashClosesDone(t *testing.T) {
	faults := t.TempDir()
	c := launch(t, accelerator.Options{Env: []string{"BERTH_MOCK_FAULTS=" + faults}})
	write(t, filepath.Join(faults, "crash"), "")
	_, err := c.Preflight(t.Context(), &pb.PreflightRequest{})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("call of a crashing plugin: %v", err)
	}
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("Done is open after the crash")
	}
}

// frozen reports whether every thread of a process has stopped. The threads receive the signal one
// after the other.
func frozen(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads of %d: %v, %v", pid, threads, err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), ") T ") {
			return false
		}
	}
	return true
}

func TestFrozenPlugin(t *testing.T) {
	c := launch(t, accelerator.Options{})
	if err := syscall.Kill(c.Pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the plugin stops", func() bool { return frozen(t, c.Pid()) })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx); status.Code(errors.Unwrap(err)) != codes.DeadlineExceeded {
		t.Errorf("ping: %v, want a passed deadline", err)
	}
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("Close took %v", time.Since(began))
	gone(t, c.Pid())
}

func TestHangAtLoad(t *testing.T) {
	faults, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(faults, "hang"), "Describe")
	began := time.Now()
	_, err := accelerator.Launch(t.Context(), accelerator.Options{
		Path: mock, SocketDir: dir, StartTimeout: 500 * time.Millisecond, Env: []string{"BERTH_MOCK_FAULTS=" + faults},
	}, &pb.DescribeRequest{})
	if err == nil {
		t.Fatal("launched")
	}
	t.Logf("gave up after %v", time.Since(began))
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestChildrenEndWithThePlugin(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "plugin")
	write(t, script, fmt.Sprintf("#!/bin/sh\nsleep 600 &\necho $! >%s/pid\nexec %s\n", dir, mock))
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	c := launch(t, accelerator.Options{Path: script})
	raw, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	// The child has the plugin's pipes open, which must not hide the exit.
	if err := syscall.Kill(c.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Error("Done is open although the plugin has ended")
	}
	gone(t, child)
}

func TestPluginLogsReachSlog(t *testing.T) {
	var logs bytes.Buffer
	faults := t.TempDir()
	c, err := accelerator.Launch(t.Context(), accelerator.Options{
		Path: mock, Env: []string{"BERTH_MOCK_FAULTS=" + faults},
		Logger: slog.New(slog.NewTextHandler(&logs, nil)),
	}, &pb.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(faults, "crash"), "")
	_, _ = c.Preflight(t.Context(), &pb.PreflightRequest{})
	<-c.Done()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(logs.String(), "crash, as ordered") {
		t.Errorf("the panic is not in the log: %s", &logs)
	}
}

func TestCancelledLaunch(t *testing.T) {
	silent := filepath.Join(t.TempDir(), "plugin") // never prints its handshake line
	write(t, silent, "#!/bin/sh\nsleep 600\n")
	if err := os.Chmod(silent, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, after := range []time.Duration{0, 100 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		defer cancel()
		if _, err := accelerator.Launch(ctx, accelerator.Options{Path: silent, SocketDir: dir}, &pb.DescribeRequest{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
