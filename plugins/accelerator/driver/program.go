package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxOutput limits the bytes read from a program's output.
const maxOutput = 2 << 20

// ErrNoProgram is normal on a machine without the vendor's tools.
var ErrNoProgram = errors.New("not installed")

// Find returns the path of a vendor's program.
func (h *Host) Find(name string) (string, error) {
	for _, dir := range h.path {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrNoProgram)
}

// Run runs a vendor's program and returns its standard output. Its error is one line with the
// reason: the program is missing (ErrNoProgram), does not end in time, fails, or prints more than 2
// MiB. The program and its children have ended when Run returns.
func (h *Host) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	path, err := h.Find(name)
	if err != nil {
		return nil, err
	}
	var out, complaint capped
	out.limit, complaint.limit = maxOutput, 4<<10
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"PATH=" + strings.Join(append(append([]string{}, h.path...), "/usr/bin", "/bin"), ":"), "LANG=C", "LC_ALL=C"}
	cmd.Stdout, cmd.Stderr = &out, &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = end, time.Second
	out.full = func() { _ = end() }
	err = cmd.Run()
	if cmd.Process != nil {
		_ = end() // its remaining children
	}
	switch {
	case out.over:
		return nil, fmt.Errorf("%s prints more than %d bytes", name, maxOutput)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s has not ended: %w", name, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s", name, err, Clean(complaint.text.String(), 100))
	}
	return out.text.Bytes(), nil
}

// RunJSON is Run for a program that prints JSON.
func (h *Host) RunJSON(ctx context.Context, v any, name string, args ...string) error {
	raw, err := h.Run(ctx, name, args...)
	if err != nil {
		return err
	}
	return unmarshal(raw, v, name)
}

func unmarshal(raw []byte, v any, name string) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s does not print the expected JSON: %s", name, Clean(err.Error(), 100))
	}
	return nil
}

// Scalar is a JSON value that some versions of a program print as a string and others as a number.
type Scalar string

// UnmarshalJSON accepts strings, numbers, booleans and null.
func (l *Scalar) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		*l = Scalar(Clean(s, 200))
	case '{', '[':
		return fmt.Errorf("%.20s is neither a text nor a number", raw)
	case 'n':
		*l = ""
	default:
		*l = Scalar(raw)
	}
	return nil
}

// capped stores the beginning of the data. It is not a bytes.Buffer, whose ReadFrom would store
// everything.
type capped struct {
	text  bytes.Buffer
	limit int
	over  bool
	full  func()
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.limit - c.text.Len(); len(p) > room {
		c.text.Write(p[:room])
		if !c.over && c.full != nil {
			c.full()
		}
		c.over = true
		return len(p), nil
	}
	return c.text.Write(p)
}

// answers caches the latest outputs of programs, by command line. A scan of the hardware, the
// node's metrics and the workloads' metrics run the same commands at about the same time.
type answers struct {
	mu  sync.Mutex
	all map[string]*answer
}

// answer is the output of a program, which is complete once done is closed.
type answer struct {
	done chan struct{}
	at   time.Time
	out  []byte
	err  error
}

// Ask is like Run, for commands that only read. Calls with the same command share one output if
// they arrive while the program runs or within Fresh after its end; callers must not modify it. If
// the context of a caller ends, the program continues for the others, but no longer than the
// timeout of a scan.
func (h *Host) Ask(ctx context.Context, name string, args ...string) ([]byte, error) {
	if _, err := h.Find(name); err != nil {
		return nil, err // the program may be installed later
	}
	a := h.answer(name, args)
	select {
	case <-a.done:
		return a.out, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s has not ended: %w", name, ctx.Err())
	}
}

// answer returns the running or fresh call of the command, or starts the program.
func (h *Host) answer(name string, args []string) *answer {
	key := strings.Join(append([]string{name}, args...), "\x00")
	h.said.mu.Lock()
	defer h.said.mu.Unlock()
	if a := h.said.all[key]; a != nil {
		select {
		case <-a.done:
			if time.Since(a.at) < h.Fresh {
				return a
			}
		default:
			return a
		}
	}
	if h.said.all == nil {
		h.said.all = map[string]*answer{}
	}
	a := &answer{done: make(chan struct{})}
	h.said.all[key] = a
	go func() { // for as long as the program runs
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		a.out, a.err = h.Run(ctx, name, args...)
		a.at = time.Now()
		close(a.done)
	}()
	return a
}

// AskJSON is Ask for a program that prints JSON.
func (h *Host) AskJSON(ctx context.Context, v any, name string, args ...string) error {
	raw, err := h.Ask(ctx, name, args...)
	if err != nil {
		return err
	}
	return unmarshal(raw, v, name)
}
