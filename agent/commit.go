package agent

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime"
)

// commitReport is the time between two reports of progress that are not about a new phase.
const commitReport = 200 * time.Millisecond

// CommitKernel sends the image of a kernel to a registry. It ends when its caller disconnects.
func (s *server) CommitKernel(r *agentpb.CommitKernelRequest, stream grpc.ServerStreamingServer[agentpb.CommitProgress]) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	out := &commitStream{stream: stream, cancel: cancel}
	begun := time.Now()
	done, err := s.a.kernels.Commit(ctx, r, out.report)
	s.a.meter.committed(begun, done, err)
	if err != nil {
		return s.a.blame(ctx, err)
	}
	return stream.Send(&agentpb.CommitProgress{
		Phase: "done", Done: true, Digest: done.Digest, SizeBytes: done.Size, LayerBytes: done.LayerBytes,
		SentBytes: done.Sent, PausedMs: done.Paused.Milliseconds(),
	})
}

// commitStream limits the reports of progress.
type commitStream struct {
	stream grpc.ServerStreamingServer[agentpb.CommitProgress]
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	phase string
	last  time.Time
}

func (s *commitStream) report(p runtime.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if p.Phase == s.phase && now.Sub(s.last) < commitReport {
		return
	}
	s.phase, s.last = p.Phase, now
	if err := s.stream.Send(&agentpb.CommitProgress{Phase: p.Phase, DoneBytes: p.Done, TotalBytes: p.Total}); err != nil {
		s.cancel(err)
	}
}
