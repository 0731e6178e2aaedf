package e2e

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/berthhq/berth/e2e/cluster"
)

// A user whose session exceeds its memory limit is notified of the reason.
func TestOutOfMemory(t *testing.T) {
	u := platform.User(t)
	calm := u.Run(cluster.Interactive())
	greedy := u.Run(cluster.Batch("echo before; exec dd if=/dev/zero of=/dev/null bs=512M count=1"))
	end := u.Until(greedy.ID, "TERMINATED")
	if end.TerminationReason == nil || *end.TerminationReason != "OUT_OF_MEMORY" || end.Result != "FAILURE" || !strings.Contains(strings.ToLower(end.StatusMessage), "memory") {
		t.Errorf("ended as %+v", end)
	}
	if r := u.Shell().Run("session", "show", greedy.Name); r.Code != 0 || !strings.Contains(r.Stdout, "memory") {
		t.Errorf("session show: %+v", r)
	}
	u.Until(calm.ID, "RUNNING")
	u.End(calm.ID)
}

// A command that prints a lot of output does not wait for its readers. Readers get the end of the
// output, and all of it while they follow.
func TestMuchOutput(t *testing.T) {
	u := platform.User(t)
	cmd := u.Shell().Command("run", "-q", "minimal:1", "--cpu", "1", "--mem", "128m", "--", "sh", "-c",
		"yes 0123456789012345678901234567890123456789012345678901234567890123456789012345678 | head -c 52428700; echo; echo the end")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tail := make([]byte, 0, 1<<10)
	count := 0
	for buf := make([]byte, 64<<10); ; {
		n, err := out.Read(buf)
		count += n
		tail = append(tail, buf[:n]...)
		tail = tail[max(0, len(tail)-1000):]
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("run: %v\n%s", err, stderr.String())
	}
	if !bytes.HasSuffix(tail, []byte("\nthe end\n")) {
		t.Errorf("ends with %q", tail[max(0, len(tail)-100):])
	}
	// A slow reader is notified of skipped output.
	if want := 52428700 + len("\nthe end\n"); count != want && !strings.Contains(stderr.String(), "no longer kept") {
		t.Errorf("%d bytes, want %d or a word about it: %s", count, want, stderr.String())
	}
}

// A command that ignores SIGTERM is killed. A command that handles it gets the grace period.
func TestGrace(t *testing.T) {
	u := platform.User(t)
	polite := u.Run(cluster.Batch("trap 'echo bye; exit 0' TERM; echo ready; while true; do sleep 0.1; done"))
	deaf := u.Run(cluster.Batch("trap '' TERM; echo ready; while true; do sleep 0.1; done"))
	for _, id := range []string{polite.ID, deaf.ID} {
		u.Until(id, "RUNNING")
		cluster.Eventually(t, "the command is ready", func() bool {
			var log bytes.Buffer
			return u.Log(t.Context(), id, &log) == nil && strings.Contains(log.String(), "ready")
		})
	}
	if _, err := u.TerminateSession(t.Context(), polite.ID, false); err != nil {
		t.Fatal(err)
	}
	if end := u.Until(polite.ID, "TERMINATED"); *end.TerminationReason != "USER_REQUESTED" {
		t.Errorf("ended as %+v", end)
	}
	if out := u.Shell().Must("session", "logs", polite.Name); !strings.Contains(out, "bye\n") {
		t.Errorf("the command was not given time: %q", out)
	}
	u.End(deaf.ID) // end it with force
}
