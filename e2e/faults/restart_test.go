package faults

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// counting prints one number after the other until it is ended.
const counting = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.1; done"

// The server is killed while a session runs. The session continues without interruption.
func TestServerKilled(t *testing.T) {
	u := platform.User(t)
	s := u.Run(cluster.Batch(counting))
	before := u.Until(s.ID, "RUNNING")
	count(t, u, s.ID, 3)

	follow := u.Shell().Command("session", "logs", "-f", s.Name)
	output, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(output, first); err != nil { // the command follows the log from here on
		t.Fatal(err)
	}

	if err := platform.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // the session counts without a reader
	if err := platform.Start("--stop-sessions"); err != nil {
		t.Fatal(err)
	}
	after := u.Show(s.ID)
	if after.Status != "RUNNING" || after.StartedAt == nil || !after.StartedAt.Equal(*before.StartedAt) {
		t.Fatalf("after the restart the session is %s (%s), started %v, before at %v", after.Status, after.StatusMessage, after.StartedAt, before.StartedAt)
	}
	if out, code := u.Exec(s.ID, "echo still here"); out != "still here\n" || code != 0 {
		t.Errorf("exec: %q, %d", out, code)
	}
	now := count(t, u, s.ID, 1)
	count(t, u, s.ID, now+3)
	u.End(s.ID)
	followed, err := io.ReadAll(output)
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("logs -f over the restart: %v", err)
	}
	gapless(t, string(first)+string(followed), now)
	if end := u.Show(s.ID); end.TerminationReason == nil || *end.TerminationReason != "USER_REQUESTED" {
		t.Errorf("ended as %+v", end.Session)
	}
}

// A server that is stopped leaves sessions running, and adopts them after its start.
func TestServerStoppedAndStarted(t *testing.T) {
	u := platform.User(t)
	restart(t)
	s := u.Run(cluster.Batch(counting))
	u.Until(s.ID, "RUNNING")
	restart(t, "--stop-sessions")
	if out, code := u.Exec(s.ID, "echo kept"); out != "kept\n" || code != 0 {
		t.Errorf("exec after a clean restart: %q, %d", out, code)
	}
	count(t, u, s.ID, 3)

	if err := platform.Interrupt(); err != nil {
		t.Fatal(err)
	}
	if err := platform.Leftovers(); err != nil {
		t.Errorf("after a stop with --stop-sessions: %v", err)
	}
	if err := platform.Start("--stop-sessions"); err != nil {
		t.Fatal(err)
	}
	end := u.Show(s.ID)
	if end.Status != "TERMINATED" || end.TerminationReason == nil || *end.TerminationReason != "SHUTDOWN" {
		t.Errorf("ended as %s, %v: %s", end.Status, end.TerminationReason, end.StatusMessage)
	}
	for _, a := range end.Kernels[0].Allocations {
		if a.FreedAt == nil {
			t.Errorf("%s %s is still held", a.Amount, a.Slot)
		}
	}
}

// When no session exists, a plain stop also leaves nothing on the machine.
func TestStopLeavesNothing(t *testing.T) {
	u := platform.User(t)
	restart(t)
	s := u.Run(cluster.Batch("true"))
	u.Until(s.ID, "TERMINATED")
	if err := platform.Interrupt(); err != nil {
		t.Fatal(err)
	}
	if err := platform.Leftovers(); err != nil {
		t.Error(err)
	}
	if err := platform.Start("--stop-sessions"); err != nil {
		t.Fatal(err)
	}
}

// The server is killed while sessions start. All of them run in the end.
func TestServerKilledWhileStarting(t *testing.T) {
	u := platform.User(t)
	for _, after := range []time.Duration{5, 100} {
		var sessions []*client.Session
		for range 3 {
			sessions = append(sessions, u.Run(cluster.Interactive()))
		}
		time.Sleep(after * time.Millisecond) // the sessions are in different stages of their start
		if err := platform.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := platform.Start("--stop-sessions"); err != nil {
			t.Fatal(err)
		}
		for _, s := range sessions {
			u.Until(s.ID, "RUNNING")
			if out, code := u.Exec(s.ID, "hostname"); code != 0 {
				t.Errorf("exec: %s", out)
			}
			u.End(s.ID)
		}
	}
}

func restart(t *testing.T, flags ...string) {
	t.Helper()
	if err := platform.Interrupt(); err != nil {
		t.Fatal(err)
	}
	if err := platform.Start(flags...); err != nil {
		t.Fatal(err)
	}
}

// count waits until the session has counted to a number without a gap, and returns the last number.
func count(t *testing.T, u *cluster.User, session string, to int) (last int) {
	t.Helper()
	cluster.Eventually(t, fmt.Sprintf("the session counts to %d", to), func() bool {
		var log bytes.Buffer
		if err := u.Log(t.Context(), session, &log); err != nil {
			t.Fatalf("read log: %v", err)
		}
		last = gapless(t, log.String(), 0)
		return last >= to
	})
	return last
}

func gapless(t *testing.T, log string, atLeast int) int {
	t.Helper()
	lines := strings.Fields(log)
	for i, line := range lines {
		if line != fmt.Sprint(i+1) {
			t.Fatalf("line %d of the log is %q", i+1, line)
		}
	}
	if len(lines) < atLeast {
		t.Errorf("the log ends with %d, want at least %d", len(lines), atLeast)
	}
	return len(lines)
}
