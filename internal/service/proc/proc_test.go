package proc_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/service/proc"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// shell is a one-line program that is ready when it has created the file.
func shell(script, ready string) proc.Spec {
	return proc.Spec{
		Name:    "shell",
		Command: func() (*exec.Cmd, error) { return exec.Command("/bin/sh", "-c", script), nil },
		Ready: func(context.Context) error {
			_, err := os.Stat(ready)
			return err
		},
		StopSignal: syscall.SIGTERM, DeathSignal: syscall.SIGKILL,
		Grace: 100 * time.Millisecond, StartTimeout: 5 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	}
}

func TestStartQuotesWhatTheChildSaid(t *testing.T) {
	_, err := proc.Start(t.Context(), shell("echo no room here >&2; exit 3", "/no/such/file"))
	if !errdefs.IsUnavailable(err) || !strings.Contains(err.Error(), "no room here") {
		t.Errorf("error is %v", err)
	}
}

func TestStartGivesUpOnAChildThatIsNeverReady(t *testing.T) {
	spec := shell("echo hm; exec sleep 1000", "/no/such/file")
	spec.StartTimeout = 50 * time.Millisecond
	_, err := proc.Start(t.Context(), spec)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want deadline exceeded", err)
	}
}

func TestStopKillsAChildThatDoesNotListen(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	s, err := proc.Start(t.Context(), shell("trap '' TERM; touch "+ready+"; while :; do sleep 0.01; done", ready))
	if err != nil {
		t.Fatal(err)
	}
	pid := s.PID()
	if sid, _, _ := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0); int(sid) != pid {
		t.Errorf("session of %d is %d: a terminal's Ctrl-C would reach it", pid, sid)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d after Stop: %v", pid, err)
	}
	if s.PID() != 0 {
		t.Errorf("PID is %d after Stop", s.PID())
	}
}

func TestAChildIsStartedAgainUntilStop(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	s, err := proc.Start(t.Context(), shell("touch "+ready+"; sleep 0.02", ready))
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "third start", func() bool { return s.Starts() >= 3 })
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	n := s.Starts()
	select {
	case <-s.Done():
	default:
		t.Error("not done after Stop")
	}
	if got := s.Starts(); got != n {
		t.Errorf("started again after Stop")
	}
}

func TestRoomIsOnlyForItsAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	outer := t.TempDir()
	if err := os.Chmod(outer, 0o700); err != nil {
		t.Fatal(err)
	}
	room, err := proc.OpenRoom(filepath.Join(outer, "room"), "no-such-user", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	defer room.Close()
	// The way to the room is barred, the room itself is not.
	cmd := exec.Command("/bin/sh", "-c", "id -un && echo made >"+proc.RoomPath+"/file && ! ls "+outer+" 2>/dev/null")
	if err := room.Enter(cmd); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "nobody" {
		t.Errorf("child said %q (%v)", out, err)
	}
	if b, err := os.ReadFile(filepath.Join(room.Path(), "file")); err != nil || string(b) != "made\n" {
		t.Errorf("file in the room: %q (%v)", b, err)
	}
	if _, err := proc.OpenRoom(filepath.Join(outer, "other"), "no-such-user"); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("no account: %v, want failed precondition", err)
	}
}
