package folders

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/e2e/cluster"
)

// sent returns the number of bytes that both proxies received.
func sent() (n int64) {
	for _, w := range platform.Wires {
		n += w.Sent()
	}
	return n
}

// held waits until a client has reached the limit of a wire. The wire is restored at the end of the
// test.
func held(t *testing.T, w *cluster.Wire) {
	t.Helper()
	t.Cleanup(w.Restore)
	cluster.Eventually(t, "an upload is in the middle", w.Held)
}

// The command, the storage proxy and the connection fail during an upload. In the end, all files
// are stored, and at most one chunk of a file was sent twice.
func TestPutIsCutInTheMiddle(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	const large = 48 << 20
	total := fill(t, filepath.Join(berth.Dir, "in"), 200, large)
	berth.Must("folder", "create", "cut", "--volume", "disk")
	before := sent()
	first, second := platform.Wires[0], platform.Wires[1]
	begin := func() (wait, kill func() error) {
		t.Helper()
		cmd := berth.Command("folder", "put", "-r", "--skip-existing", "cut", "in/.")
		var output bytes.Buffer
		cmd.Stderr = &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("put says:\n%s", output.String())
			}
		})
		return cmd.Wait, cmd.Process.Kill
	}

	first.Hold(total / 3)
	wait, kill := begin()
	held(t, first)
	if err := kill(); err != nil {
		t.Fatal(err)
	}
	_ = wait() // the command was killed
	first.Restore()

	first.Hold(total / 4)
	wait, _ = begin()
	held(t, first)
	if err := platform.Proxies[0].Kill(); err != nil {
		t.Fatal(err)
	}
	second.Hold(total / 8)
	first.Restore()
	held(t, second) // the command switches to the other proxy by itself
	second.Cut()
	time.Sleep(time.Second) // the connection stays cut for a while
	second.Restore()
	if err := wait(); err != nil {
		t.Fatalf("put continues: %v", err)
	}
	platform.Proxies[0].Return(t)

	again := sent() - before - total
	t.Logf("%d bytes of files, %d more were sent", total, again)
	const chunk, around = 8 << 20, 200 * 4 << 10 // overhead of each file: tickets, headers
	if again > 3*(chunk+3*20_000)+around {
		t.Errorf("%d bytes were sent again", again)
	}
	berth.Must("folder", "get", "-r", "cut", "out")
	if d := cmp.Diff(sums(t, filepath.Join(berth.Dir, "in")), sums(t, filepath.Join(berth.Dir, "out"))); d != "" {
		t.Error(d)
	}
	berth.Must("folder", "delete", "--yes", "cut")
}
