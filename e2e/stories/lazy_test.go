package stories

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// An administrator switches lazy start on, a user builds an image and starts a session of it on another
// agent. Its files are fetched when they are read, and then the rest. When the process that serves them is
// killed, the session ends with the reason, and the next one starts.
func TestLazyStart(t *testing.T) {
	operator := operator(t)
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	var registries []client.Registry
	read(t, operator.Must("image", "registry", "ls", "-o", "json"), &registries)
	name := ""
	for _, r := range registries {
		if r.Sweepable {
			name = r.Name
		}
	}
	if shown := operator.Must("agent", "show", "node-2"); strings.Contains(shown, "lazy-start") {
		t.Skipf("this machine has no lazy start:\n%s", shown)
	}
	operator.Must("image", "registry", "update", name, "--lazy-start")
	t.Cleanup(func() { operator.Must("image", "registry", "update", name, "--lazy-start=false") })

	builders := group(t, operator, "lazy-builders", []string{"node-1"})
	recipe := filepath.Join(t.TempDir(), "berth.yaml")
	text := "base: minimal:1\nrun: [\"head -c 30000000 /dev/urandom > /etc/big\", \"echo small > /etc/small\"]\n"
	if err := os.WriteFile(recipe, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := strings.TrimSpace(u.Shell().Must("image", "build", "lazy:1", recipe, "--project", u.Project, "--group", builders, "--cpu", "0.5", "--mem", "512m"))
	image := strings.Fields(out[strings.LastIndexByte(out, '\n')+1:])[0]

	users := group(t, operator, "lazy-users", []string{"node-2"})
	start := func() *client.Session {
		t.Helper()
		in := asks(users)
		in.Image, in.Project = image, u.Project
		s := u.Run(in)
		u.Until(s.ID, "RUNNING")
		return s
	}
	before := lazyBytes(t, "node-2")
	s := start()
	platform.Egress.Down(true)
	defer platform.Egress.Down(false)
	t.Logf("berth image describe:\n%s", u.Shell().Must("image", "describe", image))
	read := make(chan string, 1)
	go func() {
		out, code := u.Exec(s.ID, "cat /etc/small; wc -c < /etc/big")
		read <- fmt.Sprint(out, code)
	}()
	const message = "files of the image cannot be read"
	cluster.Eventually(t, "the owner sees that the registry does not answer", func() bool {
		return strings.Contains(u.Show(s.ID).StatusMessage, message)
	})
	t.Logf("berth image describe:\n%s\nthe session: %s", u.Shell().Must("image", "describe", image), u.Show(s.ID).StatusMessage)
	platform.Egress.Down(false)
	if got := <-read; got != "small\n30000000\n0" {
		t.Errorf("the files and the exit code are %q", got)
	}
	cluster.Eventually(t, "the owner sees that it is over", func() bool { return !strings.Contains(u.Show(s.ID).StatusMessage, message) })
	cluster.Eventually(t, "files were fetched by reads", func() bool { return lazyBytes(t, "node-2") > before })
	cluster.Eventually(t, "the image is complete", func() bool {
		return strings.Contains(strings.ToLower(u.Shell().Must("image", "describe", image)), "present")
	})
	t.Logf("berth image describe:\n%s", u.Shell().Must("image", "describe", image))

	if n := killLazy(t, "node-2"); n != 1 {
		t.Fatalf("%d processes served the image, want 1", n)
	}
	if end := u.Until(s.ID, "TERMINATED"); end.TerminationReason == nil || *end.TerminationReason != "KERNEL_LOST" || !strings.Contains(end.StatusMessage, "files are gone") {
		t.Errorf("the session ended with %v: %s", end.TerminationReason, end.StatusMessage)
	}
	again := start()
	if out, code := u.Exec(again.ID, "cat /etc/small"); code != 0 || out != "small\n" {
		t.Errorf("the file in the next session is %q (exit code %d)", out, code)
	}
	if n := killLazy(t, "node-2"); n != 0 {
		t.Errorf("%d processes serve an image that is complete", n)
	}
}

// lazyBytes returns a metric of an agent.
func lazyBytes(t *testing.T, node string) int {
	t.Helper()
	port, err := os.ReadFile(filepath.Join(platform.Data(), "agent", node, "metrics.port"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://127.0.0.1:" + strings.TrimSpace(string(port)) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^berth_agent_image_lazy_bytes_total (\S+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the agent has no metric of lazy starts")
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// killLazy kills the processes of an agent that serve images, and returns their number.
func killLazy(t *testing.T, node string) (n int) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		at, err := os.Readlink(p)
		if err != nil || !strings.HasPrefix(at, filepath.Join(platform.Data(), "agent", node)+"/") || !strings.Contains(at, "/lazy/") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(p, "/proc/%d/cwd", &pid); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		t.Logf("process %d: %s", pid, regexp.MustCompile(`VmRSS.*`).Find(text))
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
