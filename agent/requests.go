package agent

import (
	"context"
	"log/slog"
	"path"
	"time"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/requestid"
)

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
