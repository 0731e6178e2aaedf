package agent

import (
	"cmp"
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
)

// server implements the gRPC service. Its methods return errors with errdefs classes; the
// interceptors convert them to status codes.
type server struct {
	agentpb.UnimplementedAgentServer
	a *Agent
}

// maxMessage limits the size of a request. Real requests are far smaller.
const maxMessage = 4 << 20

func (a *Agent) newServer() *grpc.Server {
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.ChainUnaryInterceptor(a.unary), grpc.ChainStreamInterceptor(a.stream),
	)
	agentpb.RegisterAgentServer(s, &server{a: a})
	return s
}

func (a *Agent) available() error {
	select {
	case <-a.ready:
		return nil
	default:
		return fmt.Errorf("agent is still looking for its kernels: %w", errdefs.ErrUnavailable)
	}
}

func (s *server) CreateKernel(ctx context.Context, r *agentpb.CreateKernelRequest) (*agentpb.KernelState, error) {
	state, err := s.a.kernels.Create(ctx, r)
	return state, s.a.blame(ctx, err)
}

// blame replaces the class of an error that a condition of the machine has caused, so that the
// manager tries another machine.
func (a *Agent) blame(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if why, yes := a.monitor.Blame(ctx, err); yes {
		return fmt.Errorf("%s: %v: %w", why, err, errdefs.ErrResourceExhausted)
	}
	return err
}

func (s *server) GetKernel(_ context.Context, r *agentpb.GetKernelRequest) (*agentpb.KernelState, error) {
	k, err := s.a.kernels.Get(r.KernelId)
	if err != nil {
		return nil, err
	}
	return k.State(), nil
}

func (s *server) TerminateKernel(ctx context.Context, r *agentpb.TerminateKernelRequest) (*agentpb.KernelState, error) {
	return s.a.kernels.Terminate(ctx, r)
}

func (s *server) ForgetKernel(_ context.Context, r *agentpb.ForgetKernelRequest) (*agentpb.ForgetKernelResponse, error) {
	if err := s.a.kernels.Forget(r.Epoch, r.KernelId); err != nil {
		return nil, err
	}
	return &agentpb.ForgetKernelResponse{}, nil
}

func (s *server) UpdateMounts(ctx context.Context, r *agentpb.UpdateMountsRequest) (*agentpb.UpdateMountsResponse, error) {
	return &agentpb.UpdateMountsResponse{}, s.a.kernels.UpdateMounts(ctx, r)
}

func (s *server) RestartPlugin(_ context.Context, r *agentpb.RestartPluginRequest) (*agentpb.RestartPluginResponse, error) {
	return &agentpb.RestartPluginResponse{}, s.a.devices.Restart(r.Name, cmp.Or(r.Reason, "a manager asked for it"))
}

func (s *server) PullImage(r *agentpb.PullImageRequest, stream grpc.ServerStreamingServer[agentpb.PullProgress]) error {
	if r.Reference == "" {
		return fmt.Errorf("reference is empty: %w", errdefs.ErrInvalidArgument)
	}
	updates := s.a.pulls.join(r)
	for {
		select {
		case <-stream.Context().Done():
			s.a.pulls.leave(r, updates)
			return stream.Context().Err()
		case <-updates.wake:
			p, err, finished := updates.latest()
			if err != nil {
				return s.a.blame(stream.Context(), err)
			}
			if err := stream.Send(p); err != nil {
				s.a.pulls.leave(r, updates)
				return err
			}
			if finished {
				return nil
			}
		}
	}
}
