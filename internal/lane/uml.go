package lane

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
	"testing"
	"time"
)

const (
	// kernel is Debian's package user-mode-linux.
	kernel = "linux.uml"
	// A suite of 40 checks takes a minute on a busy machine; the rest is for
	// machines that are busier.
	umlTimeout = 8 * time.Minute
	umlMemory  = "1024M"
)

// job is what the machine inside is told, as a file in the shared directory.
type job struct {
	Test    string // the pattern of the test to run
	Dir     string
	Disks   []Disk
	Modules []string
	Verbose bool
}

// Files of the shared directory.
const (
	jobFile    = "job.json"
	outputFile = "output"
	statusFile = "status"
)

// boot runs the calling subtest again inside, and gives its outcome here.
func boot(t *testing.T, m Machine, share string) error {
	program, err := exec.LookPath(kernel)
	if err != nil {
		return impossible(kernel + " is not installed (make setup)")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{
		"mem=" + umlMemory, "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet",
		"con=null", "con0=null,fd:1", "init=" + self, shareKey + "=" + share,
	}
	for i, d := range m.Disks {
		image, err := d.make(share)
		if err != nil {
			return err
		}
		args = append(args, fmt.Sprintf("ubd%c=%s", 'b'+i, image))
	}
	if err := writeJob(t, m, share); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), umlTimeout)
	defer cancel()
	var console bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Stdout, c.Stderr = &console, &console
	c.WaitDelay = 10 * time.Second
	// Its memory lies in /dev/shm when no TMPDIR is set, its sockets in HOME.
	c.Env = []string{"HOME=" + share, "PATH=" + os.Getenv("PATH")}
	// A process of the host for each one inside: they end as a group.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	err = c.Run()
	return outcome(t, share, err, console.String())
}

func writeJob(t *testing.T, m Machine, share string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	levels := strings.Split(t.Name(), "/")
	for i, l := range levels {
		levels[i] = "^" + l + "$"
	}
	raw, err := json.Marshal(job{
		Test: strings.Join(levels, "/"), Dir: dir, Disks: m.Disks, Modules: m.Modules, Verbose: testing.Verbose(),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(share, jobFile), raw, 0o644)
}

// outcome reads what the machine left behind.
func outcome(t *testing.T, share string, ended error, console string) error {
	out, err := os.ReadFile(filepath.Join(share, outputFile))
	if errors.Is(err, fs.ErrNotExist) {
		return impossible(fmt.Sprintf("%s did not come up: %v: %s", kernel, ended, tail(console, 3)))
	}
	if err != nil {
		return err
	}
	code, err := os.ReadFile(filepath.Join(share, statusFile))
	switch {
	case err != nil:
		return fmt.Errorf("the machine inside died (%v)\n%s\nconsole:\n%s", ended, out, tail(console, 40))
	case string(code) != "0":
		return fmt.Errorf("inside, exit code %s\n%s\nconsole:\n%s", code, out, tail(console, 10))
	case !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")):
		return fmt.Errorf("nothing was proven inside\n%s", out)
	}
	t.Logf("inside %s:\n%s", kernel, out)
	return nil
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
