package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/internal/portstream"
)

// serveSSH runs the runner's SSH server in a kernel, with the stream as its stdin and stdout. The server
// ends with the stream.
func (a *Agent) serveSSH(ctx context.Context, call *portstream.Call) {
	defer call.Close()
	defer context.AfterFunc(ctx, func() { _ = call.Close() })()
	container, err := a.sshContainer(call.Kernel)
	stream, err := call.Answer(err)
	if err != nil {
		return
	}
	if err := runSSH(ctx, container, stream); err != nil {
		a.log.Warn("SSH server of a kernel", "kernel", call.Kernel, "error", err)
	}
}

func (a *Agent) sshContainer(kernel string) (runtime.Container, error) {
	if err := a.available(); err != nil {
		return nil, err
	}
	k, err := a.kernels.Get(kernel)
	if err != nil {
		return nil, err
	}
	return k.Running()
}

func runSSH(ctx context.Context, container runtime.Container, stream net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var said tail
	p, err := container.Exec(ctx, runtime.ExecSpec{
		Command: []string{runner.Path, "sshd"}, Stdin: &caller{stream, cancel}, Stdout: stream, Stderr: &said,
	})
	if err != nil {
		return err
	}
	code, err := p.Wait(ctx)
	if err != nil {
		hangUp(p)
		return nil // the caller has gone
	}
	if code != 0 {
		return fmt.Errorf("exit code %d: %s", code, &said)
	}
	return nil
}

// caller is what the caller sends.
type caller struct {
	io.Reader
	gone func() // called at the end
}

// Read implements io.Reader.
func (c *caller) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil {
		c.gone()
	}
	return n, err
}

// tail keeps the end of a text.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// tailSize fits the message of a program that ends.
const tailSize = 400

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%q", t.text)
}
