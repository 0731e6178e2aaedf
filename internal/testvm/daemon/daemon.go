// Package daemon runs the programs of a storage product for the life of this process: the kernel
// kills them when it exits.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Group is a set of programs. One thread starts all of them and lives as long as they do, because
// the kernel would treat the end of that thread as the end of this process.
type Group struct {
	logs   string
	env    []string
	starts chan func()
	thread sync.WaitGroup
	all    []*Process
}

// Process is a program of a group.
type Process struct {
	PID   int
	name  string
	cmd   *exec.Cmd
	done  chan struct{}
	err   error
	print string // the file with its output
}

// New returns a group whose programs have the environment env and write their output to files in
// the directory logs.
func New(logs string, env []string) *Group {
	g := &Group{logs: logs, env: env, starts: make(chan func())}
	g.thread.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		for start := range g.starts {
			start()
		}
	})
	return g
}

// Run runs a program to its end.
func (g *Group) Run(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = g.env
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}

// Start starts a program that runs until Stop.
func (g *Group) Start(name string, args ...string) (p *Process, err error) {
	started := make(chan struct{})
	g.starts <- func() {
		defer close(started)
		p, err = g.launch(name, args)
	}
	<-started
	return p, err
}

func (g *Group) launch(name string, args []string) (*Process, error) {
	out, err := os.Create(filepath.Join(g.logs, fmt.Sprintf("%s-%d", filepath.Base(name), len(g.all))))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	c := exec.Command(name, args...)
	c.Env, c.Stdout, c.Stderr = g.env, out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &Process{PID: c.Process.Pid, name: name, cmd: c, done: make(chan struct{}), print: out.Name()}
	g.all = append(g.all, p)
	go func() {
		defer close(p.done)
		p.err = c.Wait()
	}()
	return p, nil
}

var errEnded = errors.New("it should run")

// Ended returns an error with the output if the program has exited.
func (p *Process) Ended() error {
	select {
	case <-p.done:
		text, _ := os.ReadFile(p.print)
		return fmt.Errorf("%s ended: %w: %s", p.name, errors.Join(p.err, errEnded), text)
	default:
		return nil
	}
}

// Wait waits for the program to exit, at most for the given time.
func (p *Process) Wait(most time.Duration) {
	select {
	case <-p.done:
	case <-time.After(most):
	}
}

// Stop kills all programs, the last one first, because they have no data to preserve.
func (g *Group) Stop() {
	for i := len(g.all) - 1; i >= 0; i-- {
		_ = g.all[i].cmd.Process.Kill()
		<-g.all[i].done
	}
	close(g.starts) // only now: the end of the thread kills them in no defined order
	g.thread.Wait()
}
