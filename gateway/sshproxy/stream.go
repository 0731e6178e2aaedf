package sshproxy

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/berthhq/berth/agent/agentpb"
)

// Stream is the stdin and stdout of a command that an agent runs.
type Stream struct {
	rpc    agentpb.Agent_ExecClient
	cancel func()

	read sync.Mutex
	rest []byte
	said string // last message on stderr, the reason of a failure

	write sync.Mutex
}

// maxMessage is the size of one message of input. SSH packets are slightly larger than 32 KiB.
const maxMessage = 64 << 10

// NewStream starts a command over an Exec call. Close calls cancel, which must end the call. After
// an error, the caller ends the call.
func NewStream(rpc agentpb.Agent_ExecClient, cancel func(), kernel string, command []string) (*Stream, error) {
	start := &agentpb.ExecStart{KernelId: kernel, Command: command}
	if err := rpc.Send(&agentpb.ExecInput{Input: &agentpb.ExecInput_Start{Start: start}}); err != nil {
		if errors.Is(err, io.EOF) { // the answer has the reason
			_, err = rpc.Recv()
		}
		return nil, errgrpc.ToNative(err)
	}
	return &Stream{rpc: rpc, cancel: cancel}, nil
}

// Read reads the command's stdout. The error at the end contains the last message on stderr.
func (s *Stream) Read(p []byte) (int, error) {
	s.read.Lock()
	defer s.read.Unlock()
	for len(s.rest) == 0 {
		m, err := s.rpc.Recv()
		if err != nil {
			return 0, errgrpc.ToNative(err)
		}
		switch o := m.Output.(type) {
		case *agentpb.ExecOutput_Stdout:
			s.rest = o.Stdout
		case *agentpb.ExecOutput_Stderr:
			s.said = fmt.Sprintf("%.200s", o.Stderr)
		case *agentpb.ExecOutput_Exit:
			if s.said == "" {
				return 0, io.EOF
			}
			return 0, fmt.Errorf("the SSH server of the kernel ended with exit code %d: %q", o.Exit, s.said)
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Write writes to the command's stdin.
func (s *Stream) Write(p []byte) (int, error) {
	s.write.Lock()
	defer s.write.Unlock()
	done := 0
	for len(p) > done {
		part := p[done:min(len(p), done+maxMessage)]
		// The message is encoded before Send returns, so the caller can reuse its buffer.
		if err := s.rpc.Send(&agentpb.ExecInput{Input: &agentpb.ExecInput_Stdin{Stdin: part}}); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// Close ends the command.
func (s *Stream) Close() error {
	s.cancel()
	return nil
}
