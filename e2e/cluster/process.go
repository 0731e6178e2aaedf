package cluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is one berthd of a platform, which may be ended and started again.
type Process struct {
	p     *Platform
	name  string
	args  []string // of the next start
	log   journal  // what it wrote, beside the platform's
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
	asked bool          // to end
}

func (p *Platform) process(name string) *Process {
	x := &Process{p: p, name: name}
	p.servers = append(p.servers, x)
	return x
}

// Start runs berthd until it is ended or ends by itself.
func (x *Process) Start() error {
	cmd := exec.Command(x.p.Bin("berthd"), x.args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // our own Ctrl-C is not for it
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

// Return starts it again, and waits until it is open to a manager.
func (x *Process) Return(t testing.TB) {
	t.Helper()
	from := x.log.Len()
	if err := x.Start(); err != nil {
		t.Fatal(err)
	}
	Eventually(t, x.name+" is back", func() bool { return strings.Contains(x.log.From(from), "tunnel open") })
}

// Name is that of the node, or of the role.
func (x *Process) Name() string { return x.name }

// Pid is the process's number.
func (x *Process) Pid() int { return x.cmd.Process.Pid }

// pidFile is where the cleaner looks.
func (x *Process) pidFile() string { return filepath.Join(x.p.dir, x.name+".pid") }

// runs reports whether it was started and has not ended.
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

// died tells how it ended when no one asked it to.
func (x *Process) died() error {
	if x.cmd == nil || x.asked || x.runs() {
		return nil
	}
	return fmt.Errorf("berthd (%s) ended: %s", x.name, x.cmd.ProcessState)
}

// Kill is kill -9.
func (x *Process) Kill() error { return x.end(syscall.SIGKILL) }

func (x *Process) end(s syscall.Signal) error {
	x.asked = true
	if err := x.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("end berthd (%s): %w", x.name, err)
	}
	select {
	case <-x.ended:
	case <-time.After(stopTimeout):
		return fmt.Errorf("berthd (%s) does not end within %s of %s", x.name, stopTimeout, s)
	}
	if code := x.cmd.ProcessState.ExitCode(); s == syscall.SIGINT && code != 0 {
		return fmt.Errorf("berthd (%s) ended with %d after Ctrl-C", x.name, code)
	}
	return os.Remove(x.pidFile())
}
