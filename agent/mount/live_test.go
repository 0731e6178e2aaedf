package mount

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
)

// inmate is a shell in its own mount namespace, as in a container.
type inmate struct {
	dir string
	pid int
	in  io.Writer
	out *bufio.Reader
}

func newInmate(t *testing.T) *inmate {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	for _, d := range []string{"data/sub", "data/own", "own", "home/data", "home/own"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	i := &inmate{dir: dir, pid: cmd.Process.Pid, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	i.must(t, "mount -t tmpfs inner data/sub && echo text > data/file && echo text > data/sub/file")
	i.must(t, "mount --rbind data home/data && mount --bind own home/data/own")
	return i
}

// do runs a script and returns whether it succeeded, and its output.
func (i *inmate) do(t *testing.T, script string) (string, bool) {
	t.Helper()
	fmt.Fprintf(i.in, "{ %s\n} 2>&1; echo \"::$?\"\n", script)
	var out strings.Builder
	for {
		line, err := i.out.ReadString('\n')
		if code, ok := strings.CutPrefix(line, "::"); ok {
			return out.String(), code == "0\n"
		}
		if err != nil {
			t.Fatalf("%s: %v after %q", script, err, out.String())
		}
		out.WriteString(line)
	}
}

func (i *inmate) must(t *testing.T, script string) string {
	t.Helper()
	out, ok := i.do(t, script)
	if !ok {
		t.Fatalf("%s: %s", script, out)
	}
	return out
}

func (i *inmate) refused(t *testing.T, script string) {
	t.Helper()
	if out, ok := i.do(t, script); ok {
		t.Errorf("%s succeeds: %s", script, out)
	}
}

func (i *inmate) find(t *testing.T) []Place {
	t.Helper()
	places, err := Find(i.pid, []string{i.dir + "/home/data", i.dir + "/home/data/own"})
	if err != nil {
		t.Fatal(err)
	}
	return places
}

func (i *inmate) apply(t *testing.T, places []Place, c Change) []Place {
	t.Helper()
	c.Target = filepath.Join(i.dir, c.Target)
	after, err := Apply(i.pid, places, []Change{c})
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return after
}

const writes = "touch home/data/x"

// All mounts of the folder change, and none of the folder below it.
func TestApply(t *testing.T) {
	i := newInmate(t)
	places := i.find(t)
	for range 2 {
		places = i.apply(t, places, Change{Target: "home/data", ReadOnly: true})
		i.refused(t, writes)
		i.refused(t, "touch home/data/sub/x")
		i.must(t, "touch home/data/own/x && cat home/data/file home/data/sub/file && touch data/x")
	}
	places = i.apply(t, places, Change{Target: "home/data"})
	i.must(t, "touch home/data/x home/data/sub/x home/data/own/x")
	places = i.apply(t, places, Change{Target: "home/data/own", ReadOnly: true})
	i.must(t, writes)
	i.refused(t, "touch home/data/own/x")
	for range 2 {
		places = i.apply(t, places, Change{Target: "home/data", Gone: true})
		if out := i.must(t, "ls -A home/data"); out != "" {
			t.Errorf("left: %s", out)
		}
	}
	i.must(t, "cat data/file")
	if places = i.apply(t, places, Change{Target: "home/data"}); i.must(t, "ls -A home/data") != "" {
		t.Error("a removed mount came back")
	}
	if _, err := Apply(i.pid, places, []Change{{Target: "/none"}}); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("a place that is none: %v", err)
	}
}

// A mount of the volume that was read-only from the start stays read-only.
func TestApplyKeepsWhatWasReadOnly(t *testing.T) {
	i := newInmate(t)
	i.must(t, "mount -o remount,bind,ro home/data/sub")
	places := i.apply(t, i.find(t), Change{Target: "home/data", ReadOnly: true})
	i.apply(t, places, Change{Target: "home/data"})
	i.must(t, writes)
	i.refused(t, "touch home/data/sub/x")
}

// Root in the container moves the mount and replaces it by a symbolic link or another directory.
func TestApplyFindsWhatWasMoved(t *testing.T) {
	for _, lure := range []string{"ln -s /etc home", "mkdir -p home/data", "mkdir -p home && ln -s ../own home/data"} {
		i := newInmate(t)
		places := i.find(t)
		i.must(t, "mv home moved && "+lure)
		i.apply(t, places, Change{Target: "home/data", ReadOnly: true})
		i.refused(t, "touch moved/data/x")
		i.must(t, "touch own/x")
		i.apply(t, places, Change{Target: "home/data", Gone: true})
		if out := i.must(t, "ls -A moved/data"); out != "" {
			t.Errorf("%s: left %s", lure, out)
		}
		i.must(t, "mv moved/own moved/elsewhere && ls /etc/passwd own/x")
	}
}

// Files that are open for writing prevent a mount from becoming read-only; a copy replaces it.
func TestApplyWithOpenFiles(t *testing.T) {
	i := newInmate(t)
	places := i.find(t)
	i.must(t, "exec 5> home/data/log && exec 6> home/data/sub/log")
	for range 2 {
		places = i.apply(t, places, Change{Target: "home/data", ReadOnly: true})
		i.refused(t, writes)
		i.refused(t, "touch home/data/sub/x")
		i.must(t, "touch home/data/own/x && echo more >&5 && cat home/data/log home/data/sub/file")
	}
	places = i.apply(t, places, Change{Target: "home/data"})
	i.must(t, "touch home/data/x home/data/sub/x")
	places = i.apply(t, places, Change{Target: "home/data/own", ReadOnly: true})
	i.refused(t, "touch home/data/own/x")
	i.apply(t, places, Change{Target: "home/data", Gone: true})
	i.must(t, "echo last >&5 && cat data/log && test -z \"$(ls -A home/data)\"")
}

// A process with an open directory could still reach the whole folder.
func TestApplyEndsWhoKeepsADirectory(t *testing.T) {
	i := newInmate(t)
	places := i.find(t)
	i.must(t, `(cd home/data/sub && exec sleep 1000) & inside=$!
(exec 7< home/data; exec sleep 1000) & open=$!
(exec 8< home/data/file; exec sleep 1000) & file=$!
(cd data && exec sleep 1000) & other=$!
until test "$(readlink /proc/$inside/cwd)" = "$(pwd)/home/data/sub" -a -e /proc/$open/fd/7 -a -e /proc/$file/fd/8 -a "$(readlink /proc/$other/cwd)" = "$(pwd)/data"; do sleep 0.01; done`)
	i.apply(t, places, Change{Target: "home/data", Gone: true})
	i.must(t, "wait $inside; test $? = 137 && { wait $open; test $? = 137; }")
	i.must(t, "kill -0 $file && kill -0 $other; kill $file $other")
}

func TestParseMounts(t *testing.T) {
	table, err := parseMounts("30 1 8:1 / / rw - ext4 /dev/sda rw\n31 30 0:40 /a /home/a\\040b ro,nosuid master:1 - btrfs x rw\n")
	if err != nil || len(table) != 2 {
		t.Fatal(table, err)
	}
	if m := table[31]; m != (mountEntry{id: 31, parent: 30, device: "0:40", point: "/home/a b", readOnly: true}) {
		t.Errorf("%+v", m)
	}
	for _, bad := range []string{"30 1 8:1 /\n", "x 1 8:1 / / rw\n"} {
		if _, err := parseMounts(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
