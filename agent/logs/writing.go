package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

const (
	// aliveFile is a named pipe that the writer of a log keeps open for writing. A reader of the
	// pipe notices the writer's death at once.
	aliveFile = "alive"
	// pipesFile contains the identities of the container's output pipes.
	pipesFile = "pipes"
)

// Claim makes the caller the only writer of the log in dir, until the returned file is closed or
// the process ends. It returns FailedPrecondition if the log has a writer.
func Claim(dir string) (*os.File, error) {
	name := filepath.Join(dir, aliveFile)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := syscall.Mkfifo(name, 0o600); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	// Opening it for writing only would block until there is a reader.
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("log in %s has a writer: %w: %w", dir, err, errdefs.ErrFailedPrecondition)
	}
	return f, nil
}

// AwaitNoWriter returns nil once the log in dir has no writer, and the context's error if the
// context ends first. It returns NotFound if the log never had a writer.
func AwaitNoWriter(ctx context.Context, dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, aliveFile), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("log in %s was never claimed: %w", dir, errdefs.ErrNotFound)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
	// No data is ever written to the pipe: the read ends when the last writer closes it.
	_, err = f.Read(make([]byte, 1))
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// pipe identifies a pipe on this machine.
type pipe struct{ dev, ino uint64 }

func identify(f *os.File) (pipe, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return pipe{}, err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return pipe{}, fmt.Errorf("%s is not a pipe: %w", f.Name(), errdefs.ErrFailedPrecondition)
	}
	return pipe{uint64(st.Dev), st.Ino}, nil
}

// NotePipes stores the identities of the container's output pipes in dir, for Pipes.
func NotePipes(dir string, pipes ...*os.File) error {
	name := filepath.Join(dir, pipesFile)
	var lines strings.Builder
	for _, f := range pipes {
		p, err := identify(f)
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%d %d\n", p.dev, p.ino)
	}
	if err := os.WriteFile(name+".new", []byte(lines.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// Pipes opens the read ends of the output pipes of a process, stdout first. The process belongs to
// the user of the container and may have replaced its descriptors, so Pipes refuses any file other
// than the pipes recorded in dir.
func Pipes(dir string, pid int) ([]*os.File, error) {
	text, err := os.ReadFile(filepath.Join(dir, pipesFile))
	if err != nil {
		return nil, err
	}
	var open []*os.File
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		f, err := openPipe("/proc/"+strconv.Itoa(pid)+"/fd/"+strconv.Itoa(1+i), line, os.O_RDONLY)
		if err != nil {
			for _, f := range open {
				f.Close()
			}
			return nil, fmt.Errorf("open output %d of process %d: %w", 1+i, pid, err)
		}
		open = append(open, f)
	}
	return open, nil
}

// Output opens the standard output of a process for writing, so that the log gets the caller's output too.
// Like Pipes, it refuses any file other than the pipe recorded in dir.
func Output(dir string, pid int) (*os.File, error) {
	text, err := os.ReadFile(filepath.Join(dir, pipesFile))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	f, err := openPipe("/proc/"+strconv.Itoa(pid)+"/fd/1", first, os.O_WRONLY)
	if err != nil {
		return nil, fmt.Errorf("open output of process %d: %w", pid, err)
	}
	return f, nil
}

// openPipe opens the file at path if it is the recorded pipe. It checks this before opening,
// because opening a device can have side effects.
func openPipe(path, noted string, mode int) (*os.File, error) {
	named, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer named.Close()
	p, err := identify(named)
	if err != nil {
		return nil, err
	}
	if noted != fmt.Sprintf("%d %d", p.dev, p.ino) {
		return nil, fmt.Errorf("it is another pipe than at the start: %w", errdefs.ErrFailedPrecondition)
	}
	return os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(named.Fd())), mode|syscall.O_NONBLOCK, 0)
}
