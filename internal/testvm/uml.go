package testvm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// kernel is the program of Debian's package user-mode-linux.
	kernel = "linux.uml"
	// umlTimeout is far above the minute that a suite of 40 checks takes on a busy machine.
	umlTimeout = 8 * time.Minute
	umlMemory  = "1024M"
)

// job is the input of the VM, a file in the shared directory.
type job struct {
	Command []string
	Dir     string
	Env     []string
	Machine Machine
}

// Files of the shared directory.
const (
	jobFile    = "job.json"
	outputFile = "output"
	statusFile = "status"
)

// Boot starts a VM whose first process is this program, which must call Init. It runs the command
// in the VM and returns its output. Both sides share the directory share; nothing else is writable
// from inside. env is added to PATH, HOME and TMPDIR. It returns an error if the command fails.
func Boot(ctx context.Context, m Machine, share string, command, env []string) ([]byte, error) {
	program, err := exec.LookPath(kernel)
	if err != nil {
		return nil, impossible(kernel + " is not installed (make setup)")
	}
	for _, name := range m.Tools {
		if _, err := tool(name); err != nil {
			return nil, impossible(name + " is not installed (its target of make installs it)")
		}
	}
	args, err := arguments(m, share)
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(job{Command: command, Dir: dir, Env: env, Machine: m})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(share, jobFile), raw, 0o644); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, umlTimeout)
	defer cancel()
	var console bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Stdout, c.Stderr = &console, &console
	c.WaitDelay = 10 * time.Second
	// The VM's memory is in /dev/shm if TMPDIR is not set, and its sockets are in HOME.
	c.Env = []string{"HOME=" + share, "PATH=" + os.Getenv("PATH")}
	// Each process inside is a process of the host, so they are killed as a group.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	err = c.Run()
	return outcome(share, err, console.String())
}

// arguments creates the disks and returns the kernel's command line.
func arguments(m Machine, share string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{
		"mem=" + umlMemory, "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet",
		"con=null", "con0=null,fd:1", "init=" + self, shareKey + "=" + share,
	}
	for i, d := range m.Disks {
		image, err := d.make(share)
		if err != nil {
			return nil, err
		}
		args = append(args, fmt.Sprintf("ubd%c=%s", 'b'+i, image))
	}
	return args, nil
}

// outcome reads the results that the VM left.
func outcome(share string, ended error, console string) ([]byte, error) {
	out, err := os.ReadFile(filepath.Join(share, outputFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, impossible(fmt.Sprintf("%s did not come up: %v: %s", kernel, ended, tail(console, 3)))
	}
	if err != nil {
		return nil, err
	}
	code, err := os.ReadFile(filepath.Join(share, statusFile))
	switch {
	case err != nil:
		return out, fmt.Errorf("the VM died (%v)\n%s\nconsole:\n%s", ended, out, tail(console, 40))
	case string(code) != "0":
		return out, fmt.Errorf("in the VM, exit code %s\n%s\nconsole:\n%s", code, out, tail(console, 10))
	}
	return out, nil
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
