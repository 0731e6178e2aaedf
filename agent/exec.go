package agent

import (
	"context"
	"fmt"
	"io"
	goruntime "runtime"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
)

// stdinQueue is the number of input messages that are buffered for a command that does not read its
// stdin. When it is full, signals and window sizes wait behind them.
const stdinQueue = 256

type execStream = grpc.BidiStreamingServer[agentpb.ExecInput, agentpb.ExecOutput]

// Exec runs an additional command in a kernel. The command ends when its caller disconnects.
func (s *server) Exec(stream execStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return fmt.Errorf("first message has no start: %w", errdefs.ErrInvalidArgument)
	}
	k, err := s.a.kernels.Get(start.KernelId)
	if err != nil {
		return err
	}
	container, err := k.Running()
	if err != nil {
		return err
	}
	out := &execOutput{stream: stream}
	in := &execInput{queue: make(chan []byte, stdinQueue)}
	p, err := container.Exec(stream.Context(), execSpec(start, in, out))
	if err != nil {
		return err
	}
	if err := out.begin(); err != nil {
		hangUp(p)
		return err
	}
	go in.receive(stream, p)
	code, err := p.Wait(stream.Context())
	if err != nil {
		hangUp(p)
		return err
	}
	return out.send(&agentpb.ExecOutput{Output: &agentpb.ExecOutput_Exit{Exit: int32(code)}})
}

func execSpec(start *agentpb.ExecStart, in io.Reader, out *execOutput) runtime.ExecSpec {
	spec := runtime.ExecSpec{
		Command: start.Command, TTY: start.Tty, Stdin: in,
		Columns: start.GetSize().GetColumns(), Rows: start.GetSize().GetRows(),
		Stdout: writerFunc(func(b []byte) error {
			return out.send(&agentpb.ExecOutput{Output: &agentpb.ExecOutput_Stdout{Stdout: b}})
		}),
		Stderr: writerFunc(func(b []byte) error {
			return out.send(&agentpb.ExecOutput{Output: &agentpb.ExecOutput_Stderr{Stderr: b}})
		}),
	}
	if len(spec.Command) == 0 {
		spec.Command = []string{runner.Path, "shell"}
	}
	for name, value := range start.Environment {
		spec.Env = append(spec.Env, name+"="+value)
	}
	return spec
}

// hangUp ends a command whose caller has disconnected by SIGHUP, as a closed terminal does.
func hangUp(p runtime.Process) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = p.Kill(ctx, syscall.SIGHUP)
	grace, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	if _, err := p.Wait(grace); err != nil {
		_ = p.Kill(ctx, syscall.SIGKILL)
		_, _ = p.Wait(ctx)
	}
}

// execOutput serializes the senders of one stream.
type execOutput struct {
	stream execStream

	mu    sync.Mutex
	begun bool
}

func (o *execOutput) send(m *agentpb.ExecOutput) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.beginLocked(); err != nil {
		return err
	}
	return o.stream.Send(m)
}

// begin sends the message that the command has started. The command may write before its starter
// returns, but the caller must receive the start first.
func (o *execOutput) begin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.beginLocked()
}

func (o *execOutput) beginLocked() error {
	if o.begun {
		return nil
	}
	o.begun = true
	return o.stream.Send(&agentpb.ExecOutput{Output: &agentpb.ExecOutput_Started{Started: true}})
}

type writerFunc func([]byte) error

func (f writerFunc) Write(b []byte) (int, error) {
	if err := f(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// execInput is the stdin of the command. The queue is closed at its end.
type execInput struct {
	queue chan []byte
	rest  []byte
}

func (in *execInput) Read(p []byte) (int, error) {
	for len(in.rest) == 0 {
		b, ok := <-in.queue
		if !ok {
			return 0, io.EOF
		}
		in.rest = b
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// receive handles the caller's messages until the stream ends.
func (in *execInput) receive(stream execStream, p runtime.Process) {
	open := true
	finish := func() {
		if open {
			open = false
			close(in.queue)
		}
	}
	defer finish()
	ctx := stream.Context()
	for {
		m, err := stream.Recv()
		if err != nil {
			return
		}
		switch {
		case m.GetStdinEof():
			finish()
		case m.GetResize() != nil:
			_ = p.Resize(ctx, m.GetResize().Columns, m.GetResize().Rows)
		case m.GetSignal() != 0:
			_ = p.Kill(ctx, syscall.Signal(m.GetSignal()))
		case len(m.GetStdin()) > 0 && open:
			select {
			case in.queue <- m.GetStdin():
			case <-ctx.Done():
				return
			}
		}
	}
}

const architecture = goruntime.GOARCH
