package storage

import (
	"context"
	"time"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/requestid"
)

// unary converts error classes to gRPC codes and logs calls that failed.
func (p *Proxy) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	began := time.Now()
	ctx = identified(ctx)
	out, err := next(ctx, req)
	return out, p.ended(ctx, info.FullMethod, began, err)
}

func (p *Proxy) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	began := time.Now()
	ctx := identified(ss.Context())
	return p.ended(ctx, info.FullMethod, began, next(srv, &identifiedStream{ss, ctx}))
}

// identified returns a context with the request id that the manager sent, or with a new one.
func identified(ctx context.Context) context.Context {
	return requestid.With(ctx, requestid.Choose(requestid.Incoming(ctx)))
}

// identifiedStream is a stream whose context has a request id.
type identifiedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s *identifiedStream) Context() context.Context { return s.ctx }

func (p *Proxy) ended(ctx context.Context, method string, began time.Time, err error) error {
	log := p.log.With("method", method, "took", time.Since(began))
	if err == nil {
		log.DebugContext(ctx, "call")
		return nil
	}
	err = errgrpc.ToGRPC(err)
	switch status.Code(err) {
	case codes.Canceled:
		log.DebugContext(ctx, "call ended by the caller")
	case codes.Unknown, codes.Internal, codes.DataLoss, codes.Unavailable:
		log.ErrorContext(ctx, "call", "error", err)
	default:
		log.InfoContext(ctx, "call refused", "error", err)
	}
	return err
}
