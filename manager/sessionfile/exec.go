package sessionfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/containerfile"
	"github.com/berthhq/berth/internal/problem"
)

// command serves the files of a container on its stdin and stdout.
var command = []string{appstate.Runner, "files"}

// exec is the stdin and stdout of a command in a kernel.
type exec struct {
	call agentpb.Agent_ExecClient
	rest []byte
	said string // on stderr
	code int32  // with which it ended
}

// Read implements io.Reader.
func (e *exec) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		m, err := e.call.Recv()
		if err != nil {
			return 0, errgrpc.ToNative(err)
		}
		switch o := m.Output.(type) {
		case *agentpb.ExecOutput_Stdout:
			e.rest = o.Stdout
		case *agentpb.ExecOutput_Stderr:
			e.said = fmt.Sprintf("%.200s", o.Stderr)
		case *agentpb.ExecOutput_Exit:
			e.code = o.Exit
			return 0, io.EOF
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// Write implements io.Writer.
func (e *exec) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		part := p[done:min(len(p), done+containerfile.MaxData)]
		if err := e.call.Send(&agentpb.ExecInput{Input: &agentpb.ExecInput_Stdin{Stdin: part}}); err != nil {
			return done, err
		}
		done += len(part)
	}
	return len(p), nil
}

// conn is a connection to the runner in a kernel, for one request at a time.
type conn struct {
	*containerfile.Conn
	exec   *exec
	kernel uuid.UUID
	end    context.CancelFunc
	fresh  bool // it has answered nothing yet
	done   atomic.Bool
}

// Close ends the command in the kernel.
func (c *conn) Close() {
	c.done.Store(true)
	c.end()
}

// explain returns the error of a connection in words for the user.
func (c *conn) explain(err error) error {
	switch {
	case c.fresh && c.exec.code == 2:
		return problem.Precondition("the session was started by an older version of Berth, which cannot show its files; start it again, or use the terminal")
	case errdefs.IsNotFound(err), errdefs.IsFailedPrecondition(err):
		return problem.Precondition("the container is not running")
	case c.exec.said != "":
		err = fmt.Errorf("%w: %q", err, c.exec.said)
	}
	return problem.Unavailable("the connection to the container ended; try again").Because(err)
}

const (
	keepIdle = 20 * time.Second // a command without a request stays for the next one
	maxIdle  = 3                // of a kernel
)

// pool keeps connections between the requests of users who browse files. Starting a command in a
// container takes far longer than a request. Permissions are checked for every request, not for the
// connection.
type pool struct {
	mu   sync.Mutex
	idle map[uuid.UUID][]*conn
}

// get returns an idle connection, or nil.
func (p *pool) get(kernel uuid.UUID) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[kernel]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	p.set(kernel, list[:len(list)-1])
	return c
}

func (p *pool) set(kernel uuid.UUID, list []*conn) {
	if len(list) == 0 {
		delete(p.idle, kernel)
		return
	}
	if p.idle == nil {
		p.idle = map[uuid.UUID][]*conn{}
	}
	p.idle[kernel] = list
}

// put keeps a connection whose request is over.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[c.kernel]
	if c.done.Load() || len(list) >= maxIdle {
		c.Close()
		return
	}
	c.fresh = false
	p.set(c.kernel, append(list, c))
	time.AfterFunc(keepIdle, func() { p.drop(c) })
}

// drop ends a connection if it is still idle. One that was used meanwhile has a later timer too, which
// this one may anticipate.
func (p *pool) drop(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[c.kernel]
	for i, other := range list {
		if other == c {
			p.set(c.kernel, append(list[:i:i], list[i+1:]...))
			c.Close()
			return
		}
	}
}

// dial starts the command in a kernel. The connection does not end with the request.
func dial(rpc agentpb.AgentClient, kernel uuid.UUID) (*conn, error) {
	ctx, end := context.WithCancel(context.Background())
	call, err := rpc.Exec(ctx)
	if err == nil {
		err = call.Send(&agentpb.ExecInput{Input: &agentpb.ExecInput_Start{Start: &agentpb.ExecStart{KernelId: kernel.String(), Command: command}}})
		if errors.Is(err, io.EOF) { // the reason is the answer
			_, err = call.Recv()
		}
	}
	if err != nil {
		end()
		return nil, problem.Unavailable("the machine of the session cannot be reached; try again").Because(errgrpc.ToNative(err))
	}
	e := &exec{call: call}
	return &conn{Conn: containerfile.NewConn(e, e), exec: e, kernel: kernel, end: end, fresh: true}, nil
}
