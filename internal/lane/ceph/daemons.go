package ceph

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

// daemons are the processes of a cluster. They are started from one thread that
// lives as long as they do, so that the kernel ends them with this process.
type daemons struct {
	dir    string
	starts chan func()
	thread sync.WaitGroup
	all    []*daemon // from the thread alone, or after it has ended
}

type daemon struct {
	name  string
	cmd   *exec.Cmd
	done  chan struct{}
	err   error
	print string // the file of its output
}

func newDaemons(dir string) *daemons {
	d := &daemons{dir: dir, starts: make(chan func())}
	d.thread.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		for start := range d.starts {
			start()
		}
	})
	return d
}

func (d *daemons) environment() []string {
	return append(os.Environ(), "CEPH_CONF="+filepath.Join(d.dir, file))
}

// run runs a program to its end.
func (d *daemons) run(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = d.environment()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}

// start starts one that runs until stop.
func (d *daemons) start(name string, args ...string) error {
	result := make(chan error)
	d.starts <- func() { result <- d.launch(name, args) }
	return <-result
}

func (d *daemons) launch(name string, args []string) error {
	out, err := os.Create(filepath.Join(d.dir, "log", fmt.Sprintf("%s-%d", name, len(d.all))))
	if err != nil {
		return err
	}
	defer out.Close()
	c := exec.Command(name, args...)
	c.Env, c.Stdout, c.Stderr = d.environment(), out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return err
	}
	one := &daemon{name: name, cmd: c, done: make(chan struct{}), print: out.Name()}
	d.all = append(d.all, one)
	go func() {
		defer close(one.done)
		one.err = c.Wait()
	}()
	return nil
}

// ended is an error when the one that was started last is no longer there.
func (d *daemons) ended() error {
	last := d.all[len(d.all)-1]
	select {
	case <-last.done:
		text, _ := os.ReadFile(last.print)
		return fmt.Errorf("%s ended: %w: %s", last.name, errors.Join(last.err, errEnded), text)
	default:
		return nil
	}
}

var errEnded = errors.New("it should run")

// stop ends all, the client first: nothing in them is to be kept.
func (d *daemons) stop() {
	for i := len(d.all) - 1; i >= 0; i-- {
		one := d.all[i]
		if one.name == "ceph-fuse" { // which ends when it is unmounted
			select {
			case <-one.done:
				continue
			case <-time.After(5 * time.Second):
			}
		}
		_ = one.cmd.Process.Kill()
		<-one.done
	}
	close(d.starts)
	d.thread.Wait()
}
