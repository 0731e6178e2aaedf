package driver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Program is a program of the product. It runs without a shell, with English messages and with a
// time limit.
type Program struct {
	Path    string
	Longest time.Duration // limit of one run; the program may wait for unreachable servers
}

// Output is the output and the exit status of a program.
type Output struct {
	Stdout, Stderr string // truncated if long
	Code           int
}

const (
	// farewell is how long a program's children may keep its output open after its exit.
	farewell  = 2 * time.Second
	maxOutput = 4 << 20
)

// There reports whether the program is installed.
func (p Program) There() bool {
	info, err := os.Stat(p.Path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Run runs the program until its exit; a failure is part of Output. It returns an error if the
// program could not be started or exceeded the time limit, in which case it was killed with its
// children.
func (p Program) Run(ctx context.Context, args ...string) (Output, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Longest)
	defer cancel()
	c := exec.CommandContext(ctx, p.Path, args...)
	c.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	c.Dir, c.WaitDelay = "/", farewell
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	var out, wrong bounded
	c.Stdout, c.Stderr = &out, &wrong
	err := c.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Output{}, ctx.Err()
	case err != nil && !errors.As(err, &ended):
		return Output{}, status.Error(codes.FailedPrecondition, err.Error())
	}
	return Output{out.String(), wrong.String(), c.ProcessState.ExitCode()}, nil
}

// bounded stores the beginning of a program's output.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room > 0 {
		b.Builder.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
