package agent

import (
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/logs"
)

const (
	logChunk = 64 << 10
	// logPoll is how often a follower checks for new output. People do not notice a delay of this
	// length.
	logPoll = 50 * time.Millisecond
)

// Logs sends the stored log. With follow it also sends new output until the kernel has ended.
func (s *server) Logs(r *agentpb.LogsRequest, stream grpc.ServerStreamingServer[agentpb.LogChunk]) error {
	k, err := s.a.kernels.Get(r.KernelId)
	if err != nil {
		return err
	}
	if err := k.LogKept(); err != nil {
		return err
	}
	offset := r.Offset
	if r.TailLines > 0 {
		if offset, err = logs.Tail(k.LogDir(), r.TailLines); err != nil {
			return err
		}
	}
	reader := logs.NewReader(k.LogDir(), offset)
	defer reader.Close()
	poll := time.NewTicker(logPoll)
	defer poll.Stop()
	for {
		// The state is read before the log, so that everything written before the end is read after
		// it.
		over := !r.Follow
		select {
		case <-k.Done():
			over = true
		default:
		}
		if err := sendLog(reader, stream); err != nil {
			return err
		}
		if over {
			return nil
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-k.Done():
		case <-poll.C:
		}
	}
}

// sendLog sends the available output.
func sendLog(reader *logs.Reader, stream grpc.ServerStreamingServer[agentpb.LogChunk]) error {
	for {
		buf := make([]byte, logChunk)
		n, err := reader.Read(buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&agentpb.LogChunk{Data: buf[:n], Offset: reader.Offset() - int64(n)}); err != nil {
			return err
		}
	}
}
