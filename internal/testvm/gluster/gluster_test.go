package gluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	testwait "github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/testvm/vmtest"
)

// childKey is set in a child of this program that starts a cluster, prints its directory, and waits
// to be killed.
const childKey = "BERTH_GLUSTER_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childKey) == "" {
		os.Exit(m.Run())
	}
	c, err := Make(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.dir, c.image.Mount)
	time.Sleep(10 * time.Minute)
	os.Exit(1)
}

// TestKilled checks that the programs of a killed process end with it, and that the next process
// removes the mount.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster takes a while")
	}
	if err := possible(); errdefs.IsUnavailable(err) && os.Getenv(vmtest.Required) == "" {
		t.Skip(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	child := exec.CommandContext(t.Context(), "/proc/self/exe")
	child.Env, child.Stderr = append(os.Environ(), childKey+"=1"), os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	_ = child.Process.Kill()
	_ = child.Wait()
	dir, brick, ok := strings.Cut(strings.TrimSpace(line), " ")
	if !ok {
		t.Fatalf("the child prints %q", line)
	}

	testwait.Until(t, "all processes have ended", func() bool { return len(of(brick, dir)) == 0 })
	long := time.Now().Add(-time.Hour)
	for _, d := range []string{dir, filepath.Dir(brick)} {
		if err := os.Chtimes(d, long, long); err != nil {
			t.Fatal(err)
		}
	}
	next, err := Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, brick} {
		var st unix.Stat_t
		if err := unix.Lstat(d, &st); err != unix.ENOENT {
			t.Errorf("%s is still there: %v", d, err)
		}
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if all := of(next.dir, next.image.Mount); len(all) > 0 {
		t.Errorf("after Close there run %v", all)
	}
}

// of returns the processes whose command lines contain one of the words.
func of(words ...string) []string {
	var out []string
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		raw, _ := os.ReadFile(file)
		for _, w := range words {
			if strings.Contains(string(raw), w) {
				out = append(out, strings.ReplaceAll(string(raw), "\x00", " "))
			}
		}
	}
	return out
}
