package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/berthhq/berth/internal/appstate"
)

// Descriptors that a supervisor inherits from Start.
const (
	lockFD  = 3
	readyFD = 4
)

// Start starts an app unless it runs, and returns its state once the program has been started or
// could not be started.
func Start(spec appstate.Spec) (appstate.State, error) {
	d, err := open(spec.Name)
	if err != nil {
		return appstate.State{}, err
	}
	if len(spec.Command) == 0 {
		return appstate.State{}, fmt.Errorf("app %s has no command", spec.Name)
	}
	lock, st, err := d.claim()
	if lock == nil {
		return st, err
	}
	defer lock.Close()
	// Stop must not find the process ID of an earlier supervisor.
	if err := os.Remove(d.path("state.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return appstate.State{}, err
	}
	if err := d.write("spec.json", spec); err != nil {
		return appstate.State{}, fmt.Errorf("record app %s: %w", spec.Name, err)
	}
	if err := detach(spec.Name, lock); err != nil {
		return appstate.State{}, fmt.Errorf("start the supervisor of app %s: %w", spec.Name, err)
	}
	lock.Close() // the supervisor has inherited it
	return d.state()
}

// claim takes the lock of an app, or returns the state of the one that runs. A supervisor that has
// recorded the end of its program releases the lock soon.
func (d dir) claim() (*os.File, appstate.State, error) {
	for end := time.Now().Add(stopWait); ; time.Sleep(stopLook) {
		lock, err := d.lock()
		if err == nil || !errors.Is(err, errBusy) {
			return lock, appstate.State{}, err
		}
		st, err := d.state()
		if err != nil || st.Running || time.Now().After(end) {
			return nil, st, err
		}
	}
}

// detach starts a supervisor in its own session, and returns when it is ready or has ended.
// Process 1 of the container adopts it when this process exits.
func detach(name string, lock *os.File) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := exec.Command(exe, "app", "supervise", name)
	cmd.ExtraFiles = []*os.File{lock, theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, ready)
	return err
}

// Status returns the state of an app. One that was never started has no start time.
func Status(name string) (appstate.State, error) {
	d, err := open(name)
	if err != nil {
		return appstate.State{}, err
	}
	return d.state()
}

const (
	grace    = 5 * time.Second // between SIGTERM and SIGKILL for the program
	stopWait = grace + 5*time.Second
	stopLook = 20 * time.Millisecond
)

// Stop ends an app and returns its last state.
func Stop(name string) (appstate.State, error) {
	d, err := open(name)
	if err != nil {
		return appstate.State{}, err
	}
	asked := 0
	for end := time.Now().Add(stopWait); time.Now().Before(end); time.Sleep(stopLook) {
		st, err := d.state()
		if err != nil || !st.Running {
			return st, err
		}
		if st.Pid > 0 && st.Pid != asked {
			asked = st.Pid
			if err := syscall.Kill(st.Pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				return st, fmt.Errorf("stop app %s: %w", name, err)
			}
		}
	}
	return appstate.State{}, fmt.Errorf("app %s has not ended within %s", name, stopWait)
}

// Survey returns the state of all apps, the listening ports, and the paths of the given programs
// that exist in the container.
func Survey(programs []string) (*appstate.Survey, error) {
	s := &appstate.Survey{Apps: []appstate.State{}, Found: map[string]string{}}
	all, err := root()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(all)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if st, err := Status(filepath.Base(e.Name())); err == nil {
			s.Apps = append(s.Apps, st)
		}
	}
	if s.Ports, err = Ports(); err != nil {
		return nil, err
	}
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			s.Found[program] = path
		}
	}
	return s, nil
}

// describe returns why a program ended, and its exit code as shells have it.
func describe(err error, ps *os.ProcessState) (code int, reason string) {
	if ps == nil {
		code = 126
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			code = 127
		}
		return code, "it cannot be started: " + err.Error()
	}
	status := ps.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal()), "it was ended by signal " + strconv.Itoa(int(status.Signal())) + " (" + status.Signal().String() + ")"
	}
	return status.ExitStatus(), "it ended with exit code " + strconv.Itoa(status.ExitStatus())
}
