package cluster

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Shell runs the berth command in its own directory.
type Shell struct {
	Dir string

	t     testing.TB
	berth string
	env   []string
}

// Shell returns a shell of this user, with a token in the environment.
func (u *User) Shell() *Shell {
	s := &Shell{t: u.t, berth: u.p.Bin("berth")}
	return s.Beside("BERTH_URL="+u.p.URL, "BERTH_TOKEN="+u.Token)
}

// Beside returns a shell without a login, with these variables.
func (s *Shell) Beside(env ...string) *Shell {
	dir := s.t.TempDir()
	return &Shell{Dir: dir, t: s.t, berth: s.berth, env: append([]string{
		"PATH=/usr/bin:/bin", "HOME=" + dir, "BERTH_CONFIG=" + filepath.Join(dir, "config.yaml"),
	}, env...)}
}

// Forget removes variables from the environment.
func (s *Shell) Forget(names ...string) {
	s.env = slices.DeleteFunc(s.env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(names, name)
	})
}

// Result is the result of a command.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Run runs the berth command.
func (s *Shell) Run(args ...string) Result {
	s.t.Helper()
	return s.RunWith("", args...)
}

// RunWith runs the berth command with an input.
func (s *Shell) RunWith(stdin string, args ...string) Result {
	s.t.Helper()
	cmd := s.Command(args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		s.t.Fatalf("berth %q: %v", args, err)
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Must runs the berth command, which must succeed, and returns its output.
func (s *Shell) Must(args ...string) string {
	s.t.Helper()
	r := s.Run(args...)
	if r.Code != 0 {
		s.t.Fatalf("berth %s: %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Command prepares the berth command. It can also be used in a clean-up of the test.
func (s *Shell) Command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), Timeout)
	s.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, s.berth, args...)
	cmd.Dir, cmd.Env = s.Dir, s.env
	return cmd
}
