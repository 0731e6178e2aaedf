package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
)

// cancelGrace is how long a cancelled builder may take to end its steps. After it, the builder and its
// steps are killed.
const cancelGrace = 10 * time.Second

// start runs a builder with a request until it has ended, and returns its last event.
func start(ctx context.Context, program string, r Request, report func(Event)) (last Event, err error) {
	scratch := filepath.Join(r.Root, "tmp")
	if err := errors.Join(os.RemoveAll(scratch), os.MkdirAll(scratch, 0o700)); err != nil {
		return last, err
	}
	defer func() { err = errors.Join(err, endSteps(r.Cgroup)) }()
	cmd := exec.Command(program)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=" + scratch, "OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none"}
	if r.CABundle != "" {
		cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+r.CABundle)
	}
	// Mounts of steps are the builder's own, so they end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS}
	stderr := &tail{}
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return last, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return last, err
	}
	if err := cmd.Start(); err != nil {
		return last, fmt.Errorf("start the builder: %w: %w", err, errdefs.ErrUnavailable)
	}
	defer context.AfterFunc(ctx, func() {
		_ = in.Close()
		time.AfterFunc(cancelGrace, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	})()
	// The builder is in the cgroup before it gets anything to do.
	fed := enter(r.Cgroup, cmd.Process.Pid)
	if fed == nil {
		fed = json.NewEncoder(in).Encode(r)
	}
	if fed != nil {
		_ = in.Close()
	}
	last = follow(out, report)
	exit := cmd.Wait()
	switch {
	case last.Result != nil || last.Error != nil || last.Fetched != nil:
		return last, nil
	case ctx.Err() != nil:
		return last, context.Cause(ctx)
	}
	return last, fmt.Errorf("the builder ended without a result (%v); the session may have too little memory or too few processes: %s: %w",
		errors.Join(fed, exit), stderr, errdefs.ErrFailedPrecondition)
}

// follow reports events until the builder has ended, and returns the last one.
func follow(out io.Reader, report func(Event)) (last Event) {
	lines := json.NewDecoder(out)
	for {
		var e Event
		if err := lines.Decode(&e); err != nil {
			return last
		}
		last = e
		report(e)
	}
}

// tail keeps the end of a text.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if n := len(t.text); n > maxTail {
		t.text = t.text[n-maxTail:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.text), "?"))
}

// cgroups returns the directories of a cgroup in all hierarchies.
func cgroups(path string) (dirs []string, err error) {
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		found, err := filepath.Glob(pattern + path)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, found...)
	}
	return dirs, nil
}

// enter moves a process into a cgroup that exists.
func enter(path string, pid int) error {
	dirs, err := cgroups(path)
	if err != nil {
		return err
	}
	if len(dirs) == 0 {
		return fmt.Errorf("cgroup %s does not exist: %w", path, errdefs.ErrNotFound)
	}
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("move the builder into the cgroup of its session: %w", err)
		}
	}
	return nil
}

// stepsBelow is the directory of the cgroups of steps below that of the sandbox.
const stepsBelow = "/buildkit"

// endSteps kills what steps have left, such as background processes.
func endSteps(path string) error {
	dirs, err := cgroups(path + stepsBelow)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(cancelGrace); ; time.Sleep(20 * time.Millisecond) {
		var left []error
		for _, dir := range dirs {
			left = append(left, emptied(dir))
		}
		if err := errors.Join(left...); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// emptied kills the processes of a cgroup and removes it with those below it.
func emptied(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append([]string{p}, dirs...)
		}
		return nil // it may be removed during the walk
	})
	for _, d := range dirs {
		text, _ := os.ReadFile(filepath.Join(d, "cgroup.procs"))
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if e := os.Remove(d); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
