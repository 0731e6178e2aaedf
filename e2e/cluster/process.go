package cluster

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is one berthd of a platform, which can be ended and started again.
type Process struct {
	p     *Platform
	name  string
	args  []string // arguments of the next start
	log   journal  // the log of this process, in addition to the platform's
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
	asked bool          // the end was requested
}

func (p *Platform) process(name string) *Process {
	x := &Process{p: p, name: name}
	p.servers = append(p.servers, x)
	return x
}

// Start runs berthd until it ends.
func (x *Process) Start() error {
	cmd := exec.Command(x.p.Bin("berthd"), x.args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must end only the test
	out := io.MultiWriter(x.p.log, &x.log)
	cmd.Stderr, cmd.Stdout = out, out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w (run make build)", err)
	}
	ended := make(chan struct{})
	x.cmd, x.ended, x.asked = cmd, ended, false
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return os.WriteFile(x.pidFile(), []byte(strconv.Itoa(x.Pid())), 0o644)
}

// Return restarts the process, and waits until a manager can connect to it.
func (x *Process) Return(t testing.TB) {
	t.Helper()
	from := x.log.Len()
	if err := x.Start(); err != nil {
		t.Fatal(err)
	}
	Eventually(t, x.name+" is back", func() bool { return strings.Contains(x.log.From(from), "tunnel open") })
}

// Name returns the name of the node, or of the role.
func (x *Process) Name() string { return x.name }

// Pid returns the process id.
func (x *Process) Pid() int { return x.cmd.Process.Pid }

// pidFile returns the path of the file that the cleaner reads.
func (x *Process) pidFile() string { return filepath.Join(x.p.dir, x.name+".pid") }

// runs reports whether the process is running.
func (x *Process) runs() bool {
	if x.cmd == nil {
		return false
	}
	select {
	case <-x.ended:
		return false
	default:
		return true
	}
}

// died returns how the process ended, unless its end was requested.
func (x *Process) died() error {
	if x.cmd == nil || x.asked || x.runs() {
		return nil
	}
	return fmt.Errorf("berthd (%s) ended: %s", x.name, x.cmd.ProcessState)
}

// Kill sends SIGKILL.
func (x *Process) Kill() error { return x.end(syscall.SIGKILL) }

func (x *Process) end(s syscall.Signal) error {
	x.asked = true
	if err := x.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("end berthd (%s): %w", x.name, err)
	}
	select {
	case <-x.ended:
	case <-time.After(stopTimeout):
		return fmt.Errorf("berthd (%s) has not ended within %s after %s", x.name, stopTimeout, s)
	}
	if code := x.cmd.ProcessState.ExitCode(); s == syscall.SIGINT && code != 0 {
		return fmt.Errorf("berthd (%s) ended with %d after Ctrl-C", x.name, code)
	}
	return os.Remove(x.pidFile())
}

// Plugins returns the processes of the server's plugins by their programs' names, such as
// accelerator/mock.
func (p *Platform) Plugins() (map[string]int, error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, dir := range processes {
		exe, err := os.Readlink(filepath.Join(dir, "exe"))
		name, ours := strings.CutPrefix(exe, p.Bin("plugins")+"/")
		if err != nil || !ours {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		// The parent comes after the name, which can contain any character; the last ")" ends it.
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(p.Pid()) {
			found[name], _ = strconv.Atoi(filepath.Base(dir))
		}
	}
	return found, nil
}

// KillPlugins sends SIGKILL to these plugins, all at once, and waits until they run again.
func (p *Platform) KillPlugins(t testing.TB, names ...string) {
	t.Helper()
	old, err := p.Plugins()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if old[name] == 0 {
			t.Fatalf("plugin %s does not run", name)
		}
		if err := syscall.Kill(old[name], syscall.SIGKILL); err != nil {
			t.Fatalf("kill plugin %s: %v", name, err)
		}
	}
	for _, name := range names {
		Eventually(t, "plugin "+name+" runs again", func() bool {
			now, err := p.Plugins()
			return err == nil && now[name] != 0 && now[name] != old[name]
		})
	}
}

// journal stores the log of the server across restarts.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// Len returns the position of the next byte.
func (j *journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Len()
}

// From returns everything that was written at or after a position.
func (j *journal) From(at int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()[at:]
}

// Tail returns the last lines.
func (j *journal) Tail(lines int) string { return lastLines(j.From(0), lines) }

func lastLines(text string, n int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}

// Log returns the log of the server so far.
func (p *Platform) Log() string { return p.log.From(0) }

// Tail returns the last lines of the log.
func (p *Platform) Tail(lines int) string { return p.log.Tail(lines) }

// freePort returns an address of this machine on which no process listens. Its port is below the
// range from which the kernel assigns ports, so that no other process gets it before a server
// starts or restarts.
func freePort(network string) (address string, err error) {
	for range 100 {
		address = fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		var l io.Closer
		if network == "udp" {
			l, err = net.ListenPacket(network, address)
		} else {
			l, err = net.Listen(network, address)
		}
		if err == nil {
			return address, l.Close()
		}
	}
	return "", fmt.Errorf("find a free port: %w", err)
}
