package app

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/berthhq/berth/internal/appstate"
)

// supervise runs the program of an app until it ends. It inherits the lock, which it holds for its
// life, and a pipe that it closes when the program has been started.
func supervise(name string) error {
	// The death signal of the program is tied to the thread that starts it.
	runtime.LockOSThread()
	for _, fd := range []int{lockFD, readyFD} {
		syscall.CloseOnExec(fd)
	}
	ready := os.NewFile(readyFD, "ready")
	defer ready.Close()
	d, err := open(name)
	if err != nil {
		return err
	}
	st := appstate.State{Name: name, Running: true, Pid: os.Getpid(), Started: time.Now().UTC()}
	cmd, output, err := d.command()
	if err == nil {
		defer output.Close()
		err = cmd.Start()
	}
	if err != nil {
		st.Exit, st.Reason = describe(err, nil)
		st.Ended = time.Now().UTC()
		return d.write("state.json", st)
	}
	if err := d.write("state.json", st); err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return err
	}
	ready.Close()
	err = wait(cmd)
	// Processes that the program left behind would keep its port.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	st.Exit, st.Reason = describe(err, cmd.ProcessState)
	st.Ended = time.Now().UTC()
	return d.write("state.json", st)
}

// command returns the program with its environment and log.
func (d dir) command() (*exec.Cmd, *boundedLog, error) {
	text, err := os.ReadFile(d.path("spec.json"))
	if err != nil {
		return nil, nil, err
	}
	var spec appstate.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, nil, err
	}
	for key, value := range spec.Environment { // PATH, too, must be set before the program is looked up
		if err := os.Setenv(key, value); err != nil {
			return nil, nil, err
		}
	}
	cmd := exec.Command(spec.Command[0], spec.Command[1:]...)
	if cmd.Err != nil {
		return nil, nil, cmd.Err
	}
	if home := os.Getenv("HOME"); home != "" {
		if st, err := os.Stat(home); err == nil && st.IsDir() {
			cmd.Dir = home
		}
	}
	output, err := newLog(string(d))
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = time.Second // a process left behind can keep the output open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, output, nil
}

// wait waits for the program, and ends it when the supervisor receives SIGTERM: first with
// SIGTERM, then with SIGKILL.
func wait(cmd *exec.Cmd) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGHUP)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-ended:
			return
		case <-signals:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		}
		select {
		case <-ended:
		case <-time.After(grace):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}()
	return cmd.Wait()
}
