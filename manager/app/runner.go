package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// maxAnswer bounds the output of a command of the runner.
const maxAnswer = 4 << 20

// Container is a kernel on a connected agent.
type Container struct {
	Kernel uuid.UUID
	RPC    agentpb.AgentClient
	Ports  portstream.Opener
}

// Reach returns a kernel of a session and its agent. The caller must have checked the permission.
func (s *Service) Reach(ctx context.Context, session uuid.UUID, index int) (*Container, error) {
	ctx = viewer.SystemContext(ctx)
	k, err := s.Client.Kernel.Query().Where(kernel.SessionID(session), kernel.Index(index)).WithAgent().Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "container", "kernel")
	}
	if k.Edges.Agent == nil {
		return nil, problem.Precondition("the container is %s and not on a machine yet", k.Status)
	}
	name := k.Edges.Agent.Name
	rpc, err := s.Agents.RPC(name)
	if err != nil {
		return nil, problem.Unavailable("machine %s is not connected", name).RetryAfter(time.Second).Because(err)
	}
	ports, err := s.Agents.Streams(name)
	if err != nil {
		return nil, problem.Unavailable("machine %s is not connected", name).RetryAfter(time.Second).Because(err)
	}
	return &Container{k.ID, rpc, ports}, nil
}

// ask runs a command of the runner in a kernel and decodes its answer.
func ask(ctx context.Context, rpc agentpb.AgentClient, kernel uuid.UUID, input, answer any, args ...string) error {
	out, err := execute(ctx, rpc, kernel, input, args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, answer); err != nil {
		return fmt.Errorf("answer of the runner in kernel %s: %w", kernel, err)
	}
	return nil
}

// execute runs a command of the runner with a value as JSON on its standard input, and returns its
// output. An error of the runner has the class FAILED_PRECONDITION.
func execute(ctx context.Context, rpc agentpb.AgentClient, kernel uuid.UUID, input any, args ...string) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	text, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	stream, err := rpc.Exec(ctx)
	if err != nil {
		return nil, err
	}
	start := &agentpb.ExecStart{KernelId: kernel.String(), Command: append([]string{appstate.Runner, "app"}, args...)}
	for _, in := range []*agentpb.ExecInput{
		{Input: &agentpb.ExecInput_Start{Start: start}},
		{Input: &agentpb.ExecInput_Stdin{Stdin: text}},
		{Input: &agentpb.ExecInput_StdinEof{StdinEof: true}},
	} {
		if err := stream.Send(in); err != nil && !errors.Is(err, io.EOF) { // Recv has the reason for EOF
			return nil, err
		}
	}
	var stdout, stderr bytes.Buffer
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil, fmt.Errorf("run %s in kernel %s: %w", strings.Join(args, " "), kernel, err)
		}
		switch o := m.Output.(type) {
		case *agentpb.ExecOutput_Stdout:
			stdout.Write(o.Stdout)
		case *agentpb.ExecOutput_Stderr:
			stderr.Write(o.Stderr)
		case *agentpb.ExecOutput_Exit:
			if o.Exit != 0 {
				return nil, problem.Precondition("%s", strings.TrimSpace(stderr.String()))
			}
			return stdout.Bytes(), nil
		}
		if stdout.Len()+stderr.Len() > maxAnswer {
			return nil, fmt.Errorf("the runner in kernel %s printed more than %d bytes", kernel, maxAnswer)
		}
	}
}

// Start starts an app that can be started, and returns its state.
func (s *Service) Start(ctx context.Context, rpc agentpb.AgentClient, kernel uuid.UUID, d Definition, prefix string) (st appstate.State, err error) {
	if !d.Startable() {
		return st, problem.Precondition("app %s has no command; start it in the session", d.Name)
	}
	defer s.surveys.forget(kernel)
	return st, ask(ctx, rpc, kernel, d.spec(prefix), &st, "start")
}

// State returns the state of an app.
func (s *Service) State(ctx context.Context, rpc agentpb.AgentClient, kernel uuid.UUID, name string) (st appstate.State, err error) {
	return st, ask(ctx, rpc, kernel, nil, &st, "status", name)
}

// Stop ends an app.
func (s *Service) Stop(ctx context.Context, rpc agentpb.AgentClient, kernel uuid.UUID, name string) (st appstate.State, err error) {
	defer s.surveys.forget(kernel)
	return st, ask(ctx, rpc, kernel, nil, &st, "stop", name)
}

// Tail returns at most the last n bytes of the output of an app.
func (s *Service) Tail(ctx context.Context, rpc agentpb.AgentClient, kernel uuid.UUID, name string, n int) (string, error) {
	out, err := execute(ctx, rpc, kernel, nil, "log", name, strconv.Itoa(n))
	return strings.ToValidUTF8(string(out), "�"), err
}

// surveyed is a survey, which is in progress until done is closed.
type surveyed struct {
	done   chan struct{}
	at     time.Time
	result *appstate.Survey
	err    error
}

// survey asks a kernel about its apps, and caches the answer for surveyFor.
func (s *Service) survey(ctx context.Context, rpc agentpb.AgentClient, kernel uuid.UUID) (*appstate.Survey, error) {
	x, mine := s.surveys.get(kernel)
	if mine {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), surveyTime)
		defer cancel()
		x.result = &appstate.Survey{}
		x.err = ask(ctx, rpc, kernel, s.programs(), x.result, "survey")
		x.at = time.Now()
		close(x.done)
	}
	select {
	case <-x.done:
		return x.result, x.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// get returns the survey to use or to wait for; mine reports whether the caller must perform it.
func (s *surveys) get(kernel uuid.UUID) (x *surveyed, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.m[kernel]; x != nil && !x.old() {
		return x, false
	}
	if len(s.m) >= surveysMost {
		for k, x := range s.m {
			if x.old() {
				delete(s.m, k)
			}
		}
	}
	x = &surveyed{done: make(chan struct{})}
	s.m[kernel] = x
	return x, true
}

func (x *surveyed) old() bool {
	select {
	case <-x.done:
		return time.Since(x.at) > surveyFor
	default:
		return false
	}
}

// forget drops the survey, so that the next call asks the kernel again.
func (s *surveys) forget(kernel uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, kernel)
}
