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

// Program is one of the product's own that a volume runs: without a shell, with
// English messages, and not for longer than it may take.
type Program struct {
	Path    string
	Longest time.Duration // that one run may take; it may wait for servers that are away
}

// Output is what a program said and how it ended.
type Output struct {
	Stdout, Stderr string // the beginning, where it is long
	Code           int
}

const (
	// farewell is what a program's children have to let go of its output once it has ended.
	farewell  = 2 * time.Second
	maxOutput = 4 << 20
)

// There reports whether there is such a program.
func (p Program) There() bool {
	info, err := os.Stat(p.Path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Run runs it to its end, which may be a failure. The error is that it could not
// be run, or took too long: then it is killed, with those that it has started.
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

// bounded keeps the beginning of what a program says.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room > 0 {
		b.Builder.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
