package agent_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// logWriters returns the pids of the log writers of a kernel.
func logWriters(t *testing.T, kernel string) (pids []int) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		text, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(text, []byte(kernel+"/log")) || !bytes.Contains(text, []byte("\x00log\x00")) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		pids = append(pids, pid)
	}
	return pids
}

// lastTick returns the highest number that prog's "tick" has written to the log.
func (n *node) lastTick(t *testing.T, kernel string) int {
	t.Helper()
	stream, err := n.Logs(t.Context(), &agentpb.LogsRequest{KernelId: kernel, TailLines: 2})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for {
		chunk, err := stream.Recv()
		if err != nil {
			break
		}
		text = append(text, chunk.Data...)
	}
	lines := strings.Split(string(text), "\n")
	last := 0
	for _, line := range lines {
		if number, err := strconv.Atoi(strings.TrimPrefix(line, "tick ")); err == nil {
			last = max(last, number)
		}
	}
	return last
}

// goesOn waits until the log has 50 more lines.
func (n *node) goesOn(t *testing.T, kernel string) {
	t.Helper()
	from := n.lastTick(t, kernel)
	wait.For(t, func() error {
		if s := n.state(t, kernel); s.GetPhase() != agentpb.KernelState_RUNNING {
			t.Fatalf("the kernel no longer runs: %v", s)
		}
		if now := n.lastTick(t, kernel); now < from+50 {
			return fmt.Errorf("log stands at line %d, %d before", now, from)
		}
		return nil
	})
}

// killWriter kills the log writer of a kernel, which must have exactly one.
func killWriter(t *testing.T, kernel string) {
	t.Helper()
	var pids []int
	wait.For(t, func() error {
		if pids = logWriters(t, kernel); len(pids) != 1 {
			return fmt.Errorf("log writers: %v", pids)
		}
		return nil
	})
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestLogWriterKilled kills the log writer of a running kernel, while the agent runs and while it
// does not. The kernel keeps running, its log continues, and only the lines that the writer had in
// memory are lost.
func TestLogWriterKilled(t *testing.T) {
	n := newNode(t, v1.Config{})
	n.cfg.KeepSessions = true
	stop := n.run(t)
	n.pull(t)
	r := n.request("tick")
	n.start(t, r)
	n.goesOn(t, r.KernelId)
	const kills = 3
	for range kills {
		killWriter(t, r.KernelId)
		n.goesOn(t, r.KernelId)
	}
	stop()
	killWriter(t, r.KernelId)
	n.cfg.KeepSessions = false
	stop = n.run(t)
	n.goesOn(t, r.KernelId)
	if s := n.end(t, r.KernelId, time.Millisecond); s.Reason != "terminated" {
		t.Errorf("%v", s)
	}
	gaps, next := 0, 1
	for line := range strings.Lines(n.output(t, r.KernelId)) {
		number, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "tick ")))
		if err != nil {
			gaps++ // an incomplete line
			continue
		}
		// The two pipes are read in turn, so lines can be out of order by a few.
		if number > next+20 {
			gaps++
		}
		next = max(next, number)
	}
	if gaps > 2*(kills+1) {
		t.Errorf("%d gaps after %d kills", gaps, kills+1)
	}
	wait.For(t, func() error {
		if left := logWriters(t, r.KernelId); len(left) > 0 {
			return fmt.Errorf("log writers left: %v", left)
		}
		return nil
	})
	stop()
	n.nothingLeft(t)
}
