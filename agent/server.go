package agent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/requestid"
)

// server implements the gRPC service. Its methods return errors with errdefs classes; the
// interceptors convert them to status codes.
type server struct {
	agentpb.UnimplementedAgentServer
	a *Agent
}

// maxMessage limits the size of a request. The largest one has the files of a build.
const maxMessage = 16 << 20

func (a *Agent) newServer() *grpc.Server {
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.ChainUnaryInterceptor(a.unary), grpc.ChainStreamInterceptor(a.stream),
	)
	agentpb.RegisterAgentServer(s, &server{a: a})
	if a.cfg.Registry != nil {
		cluster.ServeMetrics(s, a.cfg.Registry)
	}
	return s
}

func (a *Agent) available() error {
	select {
	case <-a.ready:
		return nil
	default:
		return fmt.Errorf("agent is still recovering its kernels: %w", errdefs.ErrUnavailable)
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
	return &agentpb.RestartPluginResponse{}, s.a.devices.Restart(r.Name, cmp.Or(r.Reason, "requested by a manager"))
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

// identified returns a context with the id of the API request that caused the call, if the manager
// sent one.
func identified(ctx context.Context) context.Context {
	if id := requestid.Incoming(ctx); id != "" {
		return requestid.With(ctx, id)
	}
	return ctx
}

// identifiedStream is a stream whose context has the request id.
type identifiedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s *identifiedStream) Context() context.Context { return s.ctx }

// unary handles a call: it maps error classes to status codes and logs the call.
func (a *Agent) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if err := a.available(); err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	ctx = identified(ctx)
	begun := time.Now()
	resp, err := handle(ctx, req)
	err = errgrpc.ToGRPC(err)
	a.served(ctx, info.FullMethod, req, begun, err)
	return resp, err
}

// stream handles a stream like unary handles a call.
func (a *Agent) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if err := a.available(); err != nil {
		return errgrpc.ToGRPC(err)
	}
	ctx := identified(stream.Context())
	begun := time.Now()
	err := errgrpc.ToGRPC(a.meter.stream(srv, &identifiedStream{stream, ctx}, info, handle))
	a.served(ctx, info.FullMethod, nil, begun, err)
	return err
}

// served logs one call: at level info if a user's request caused it, and at level debug for calls
// that managers make on their own.
func (a *Agent) served(ctx context.Context, method string, req any, begun time.Time, err error) {
	level := slog.LevelDebug
	if requestid.From(ctx) != "" {
		level = slog.LevelInfo
	}
	if !a.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("call", path.Base(method)), slog.Duration("took", time.Since(begun))}
	if k, ok := req.(interface{ GetKernelId() string }); ok {
		attrs = append(attrs, slog.String("kernel", k.GetKernelId()))
	}
	if err != nil && status.Code(err) != codes.Canceled {
		attrs = append(attrs, slog.Any("error", err))
	}
	a.log.LogAttrs(ctx, level, "call of a manager", attrs...)
}
