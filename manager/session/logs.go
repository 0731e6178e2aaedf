package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session/agentcall"
)

// LogOptions select the part of a log, and whether to follow it.
type LogOptions struct {
	Follow    bool
	Offset    int64
	TailLines int64
}

// Log is one reader of a kernel's log.
type Log struct {
	stream agentpb.Agent_LogsClient
	cancel context.CancelFunc
	gone   error  // error for a kernel that the agent does not know; nil: the agent's own
	rest   []byte // the first bytes of a character that is not complete yet
	next   int64
}

// Logs opens the log of a kernel that the viewer can see. A kernel that has not been placed yet has
// none.
func (s *Service) Logs(ctx context.Context, id uuid.UUID, opt LogOptions) (*Log, error) {
	if opt.Offset < 0 || opt.TailLines < 0 {
		return nil, problem.Invalid("offset", "must not be negative")
	}
	k, err := s.kernel(ctx, id)
	if err != nil {
		return nil, err
	}
	var gone error
	if k.TerminatedAt != nil {
		gone = s.logsRemoved(ctx)
	}
	if k.Forgotten {
		return nil, gone
	}
	rpc, err := s.rpc(ctx, k)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stream, err := rpc.Logs(ctx, &agentpb.LogsRequest{
		KernelId: k.ID.String(), Follow: opt.Follow, Offset: opt.Offset, TailLines: opt.TailLines,
	})
	if err != nil {
		cancel()
		return nil, errgrpc.ToNative(err)
	}
	s.meter.Logs.Inc()
	context.AfterFunc(ctx, s.meter.Logs.Dec)
	return &Log{stream: stream, cancel: cancel, gone: gone}, nil
}

// logsRemoved explains the missing log of an ended session.
func (s *Service) logsRemoved(ctx context.Context) error {
	if s.LogRetention != nil {
		before, err := s.LogRetention.LogsBefore(ctx)
		if err != nil {
			return err
		}
		if !before.IsZero() {
			days := int(clock.Now().Sub(before).Hours()+12) / 24
			return problem.Precondition("the logs of this session were removed: logs are kept for %d days after the end of a session", days)
		}
	}
	return problem.Precondition("the logs of this session were removed")
}

// Reach returns a kernel that the viewer can see, and its agent.
func (s *Service) Reach(ctx context.Context, id uuid.UUID) (*ent.Kernel, agentpb.AgentClient, error) {
	k, err := s.kernel(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	rpc, err := s.rpc(ctx, k)
	if err != nil {
		return nil, nil, err
	}
	return k, rpc, nil
}

func (s *Service) kernel(ctx context.Context, id uuid.UUID) (*ent.Kernel, error) {
	k, err := s.Client.Kernel.Query().Where(kernel.ID(id)).Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "kernel", "kernel")
	}
	return k, nil
}

func (s *Service) rpc(ctx context.Context, k *ent.Kernel) (agentpb.AgentClient, error) {
	name, err := s.AgentOf(ctx, k)
	if err != nil {
		return nil, err
	}
	rpc, err := s.Agents.RPC(name)
	if err != nil {
		return nil, problem.Unavailable("agent %s is not connected", name)
	}
	return rpc, nil
}

// AgentOf returns the name of the agent that a kernel in the viewer's sight is on.
func (s *Service) AgentOf(ctx context.Context, k *ent.Kernel) (string, error) {
	if k.AgentID == nil {
		return "", problem.Precondition("the kernel is %s and not on a machine yet", k.Status)
	}
	// A user who can see the session can read its log, even if they could not start another
	// session.
	a, err := s.Client.Agent.Get(viewer.SystemContext(ctx), *k.AgentID)
	if err != nil {
		return "", permit.Missing(err, "agent of the kernel", "kernel")
	}
	return a.Name, nil
}

// Next returns the next piece as text with its byte offsets. The error is
// io.EOF at the end of the log.
func (l *Log) Next() (text string, from, to int64, err error) {
	chunk, err := l.stream.Recv()
	if errors.Is(err, io.EOF) && len(l.rest) > 0 {
		rest := l.rest
		l.rest = nil
		return strings.ToValidUTF8(string(rest), "\uFFFD"), l.next - int64(len(rest)), l.next, nil
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			return "", 0, 0, io.EOF
		}
		err = errgrpc.ToNative(err)
		if errdefs.IsNotFound(err) && l.gone != nil {
			err = l.gone
		}
		return "", 0, 0, err
	}
	from = chunk.Offset
	data := chunk.Data
	if len(l.rest) > 0 && chunk.Offset == l.next {
		from -= int64(len(l.rest))
		data = append(l.rest, data...)
	}
	l.next = chunk.Offset + int64(len(chunk.Data))
	whole := len(data) - partial(data)
	l.rest = append([]byte(nil), data[whole:]...)
	return strings.ToValidUTF8(string(data[:whole]), "\uFFFD"), from, from + int64(whole), nil
}

// partial returns the number of bytes at the end that are the beginning of an incomplete character.
func partial(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// Close ends the stream.
func (l *Log) Close() { l.cancel() }

// EndOfLog distinguishes the regular end from a failure.
func EndOfLog(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) }

const (
	forgetEvery = time.Minute
	// forgetBatch limits the requests of one pass: an agent removes some files for each.
	forgetBatch = 500
)

// forgetOld makes agents drop the records and logs of kernels that ended long ago, until ctx ends.
func (s *Service) forgetOld(ctx context.Context, epoch int64) {
	if s.LogRetention == nil {
		return
	}
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		if _, err := s.ForgetEnded(ctx, epoch); err != nil && ctx.Err() == nil {
			s.Logger.Error("remove logs of ended sessions", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ForgetEnded asks the live agents to drop a batch of kernels whose logs are older than the
// retention, and returns how many they have dropped. It can be repeated: an agent that does not
// know a kernel has dropped it.
func (s *Service) ForgetEnded(ctx context.Context, epoch int64) (int, error) {
	before, err := s.LogRetention.LogsBefore(ctx)
	if err != nil || before.IsZero() {
		return 0, err
	}
	old, err := s.Client.Kernel.Query().
		Where(kernel.TerminatedAtLT(before), kernel.Forgotten(false), kernel.HasAgentWith(agent.StatusEQ(agent.StatusAlive))).
		WithAgent().Order(kernel.ByTerminatedAt()).Limit(forgetBatch).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("list old kernels: %w", err)
	}
	var done []uuid.UUID
	silent := map[uuid.UUID]bool{} // agents that did not answer
	for _, k := range old {
		if silent[*k.AgentID] {
			continue
		}
		if err := s.forget(ctx, epoch, k); err != nil {
			s.Logger.Debug("remove log of an ended session", "kernel", k.ID, "error", err)
			silent[*k.AgentID] = agentcall.Unreachable(err)
			continue
		}
		done = append(done, k.ID)
	}
	if len(done) == 0 {
		return 0, nil
	}
	if err := s.Client.Kernel.Update().Where(kernel.IDIn(done...)).SetForgotten(true).Exec(ctx); err != nil {
		return 0, fmt.Errorf("mark %d kernels as forgotten: %w", len(done), err)
	}
	return len(done), s.LogRetention.LogsRemoved(ctx, len(done))
}

func (s *Service) forget(ctx context.Context, epoch int64, k *ent.Kernel) error {
	rpc, err := s.Agents.RPC(k.Edges.Agent.Name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, agentcall.Timeout)
	defer cancel()
	_, err = rpc.ForgetKernel(ctx, &agentpb.ForgetKernelRequest{Epoch: epoch, KernelId: k.ID.String()})
	return errgrpc.ToNative(err)
}
