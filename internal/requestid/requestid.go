// Package requestid assigns an id to each request, so that log lines, errors that people see and
// calls to other processes can be matched. Every server and client can import it.
package requestid

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Header carries the id over HTTP; in gRPC metadata it is lower case.
const Header = "X-Request-Id"

const maxLength = 64

type key struct{}

// With returns a context of the request with this id.
func With(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, key{}, id)
}

// From returns the id of ctx's request, or "".
func From(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}

// Middleware uses the id that a client sent, if its characters are allowed, or a new one, and
// returns it in the answer.
func Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := Choose(r.Header.Get(Header))
		r.Header.Set(Header, id)
		w.Header().Set(Header, id)
		next.ServeHTTP(w, r.WithContext(With(r.Context(), id)))
	})
}

// Choose returns id if its characters are allowed, and a new id otherwise.
func Choose(id string) string {
	if valid(id) {
		return id
	}
	return strings.ToLower(rand.Text()[:16])
}

func valid(id string) bool {
	if id == "" || len(id) > maxLength {
		return false
	}
	for i := range len(id) {
		c := id[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return true
}

// Outgoing returns a context whose gRPC calls carry the id.
func Outgoing(ctx context.Context) context.Context {
	if id := From(ctx); id != "" {
		return metadata.AppendToOutgoingContext(ctx, strings.ToLower(Header), id)
	}
	return ctx
}

// UnaryClient and StreamClient add the id to a connection's calls.
func UnaryClient(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(Outgoing(ctx), method, req, reply, cc, opts...)
}

// StreamClient is UnaryClient for streams.
func StreamClient(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return streamer(Outgoing(ctx), desc, cc, method, opts...)
}

// Incoming returns the id that a gRPC call came with, or "".
func Incoming(ctx context.Context) string {
	if v := metadata.ValueFromIncomingContext(ctx, strings.ToLower(Header)); len(v) == 1 && valid(v[0]) {
		return v[0]
	}
	return ""
}

// LogHandler adds the id of the context to every line.
type LogHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h LogHandler) Handle(ctx context.Context, r slog.Record) error {
	if id := From(ctx); id != "" {
		r.AddAttrs(slog.String("request", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return LogHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h LogHandler) WithGroup(name string) slog.Handler { return LogHandler{h.Handler.WithGroup(name)} }
