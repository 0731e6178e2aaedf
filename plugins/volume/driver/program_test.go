package driver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/testenv/wait"
)

// script creates a program.
func script(t *testing.T, text string) Program {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return Program{Path: path, Longest: time.Minute}
}

func TestProgramEnds(t *testing.T) {
	p := script(t, `printf '%s|' "$@"; echo "$HOME$LC_ALL" >&2; exit 3`)
	out, err := p.Run(t.Context(), "a b", "$(id)", "")
	if want := (Output{"a b|$(id)||", "C\n", 3}); err != nil || out != want {
		t.Errorf("%+v, %v; want %+v", out, err, want)
	}
	if !p.There() {
		t.Error("it is not there")
	}
}

func TestProgramThatIsNone(t *testing.T) {
	p := Program{Path: filepath.Join(t.TempDir(), "none"), Longest: time.Minute}
	if _, err := p.Run(t.Context()); status.Code(err) != codes.FailedPrecondition || p.There() {
		t.Errorf("%v", err)
	}
	if (Program{Path: t.TempDir()}).There() {
		t.Error("a directory is a program")
	}
}

// TestProgramHangs checks that the children of a program are killed with it.
func TestProgramHangs(t *testing.T) {
	child := filepath.Join(t.TempDir(), "child")
	p := script(t, `sleep 1000 & echo $! >`+child+`.new; mv `+child+`.new `+child+`; wait`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.Run(ctx)
		ended <- err
	}()
	var pid int
	wait.Until(t, "the program has started its child", func() bool {
		raw, _ := os.ReadFile(child)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
		return pid != 0
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended as %v", err)
	}
	wait.Until(t, "the child ends", func() bool { return !alive(pid) })

	p.Longest = 20 * time.Millisecond
	if _, err := p.Run(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the longest time: %v", err)
	}
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && unix.Kill(pid, 0) == nil && !strings.Contains(string(raw), ") Z ")
}

func TestProgramSaysMuch(t *testing.T) {
	out, err := script(t, `head -c 10000000 /dev/zero`).Run(t.Context())
	if err != nil || len(out.Stdout) != maxOutput || out.Code != 0 {
		t.Errorf("%d bytes, code %d, %v", len(out.Stdout), out.Code, err)
	}
}
