package storage

import (
	"context"
	"time"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// requestKey is the metadata in which a manager sends a request's id.
const requestKey = "x-request-id"

// unary turns error classes into codes and logs what failed.
func (p *Proxy) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	began := time.Now()
	out, err := next(ctx, req)
	return out, p.ended(ctx, info.FullMethod, began, err)
}

func (p *Proxy) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	began := time.Now()
	return p.ended(ss.Context(), info.FullMethod, began, next(srv, ss))
}

func (p *Proxy) ended(ctx context.Context, method string, began time.Time, err error) error {
	request := uuid.NewString()
	if md, ok := metadata.FromIncomingContext(ctx); ok && len(md.Get(requestKey)) > 0 {
		request = md.Get(requestKey)[0]
	}
	log := p.log.With("method", method, "request", request, "took", time.Since(began))
	if err == nil {
		log.Debug("call")
		return nil
	}
	err = errgrpc.ToGRPC(err)
	switch status.Code(err) {
	case codes.Canceled:
		log.Debug("call ended by the caller")
	case codes.Unknown, codes.Internal, codes.DataLoss, codes.Unavailable:
		log.Error("call", "error", err)
	default:
		log.Info("call refused", "error", err)
	}
	return err
}
