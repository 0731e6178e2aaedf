package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/build"
)

// BuildImage builds an image in a kernel's sandbox. It ends when its caller disconnects.
func (s *server) BuildImage(r *agentpb.BuildImageRequest, stream grpc.ServerStreamingServer[agentpb.BuildProgress]) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	begun := time.Now()
	var sending sync.Mutex
	done, err := s.a.kernels.Build(ctx, r, func(phase string) {
		sending.Lock()
		defer sending.Unlock()
		if err := stream.Send(&agentpb.BuildProgress{Phase: phase}); err != nil {
			cancel(err)
		}
	})
	s.a.meter.built(begun, done, err)
	var failed *build.Error
	if errors.As(err, &failed) {
		return stream.Send(&agentpb.BuildProgress{Phase: "done", Done: true, Failure: failed.Message, FailedStep: failed.Step})
	}
	if err != nil {
		return s.a.blame(ctx, err)
	}
	return stream.Send(&agentpb.BuildProgress{
		Phase: "done", Done: true, Digest: done.Digest, LayerBytes: done.LayerBytes, SentBytes: done.Sent,
		Steps: int32(done.Steps), CachedSteps: int32(done.Cached),
	})
}

// FetchSource fetches a Git repository in a kernel's sandbox.
func (s *server) FetchSource(ctx context.Context, r *agentpb.FetchSourceRequest) (*agentpb.FetchSourceResponse, error) {
	done, err := s.a.kernels.FetchSource(ctx, r)
	var failed *build.Error
	if errors.As(err, &failed) {
		return &agentpb.FetchSourceResponse{Failure: failed.Message}, nil
	}
	if err != nil {
		return nil, s.a.blame(ctx, err)
	}
	return &agentpb.FetchSourceResponse{Commit: done.Commit, File: done.File, Text: done.Text, ContainerFiles: done.ContainerFiles}, nil
}
