package layers

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errhttp"
	"golang.org/x/net/netutil"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/internal/ticket"
)

const (
	// DefaultUploads is the number of parts that an agent sends at a time.
	DefaultUploads = 32
	// maxConnections includes those that are not authenticated yet.
	maxConnections = 256
	// keepAlive is the longest silence of a sender that waits for its own source.
	keepAlive = 2 * time.Second
	// sendTimeout is the longest time that a receiver takes for one frame.
	sendTimeout = 30 * time.Second
	// maxRequest is enough for the documents in base64, and the ticket.
	maxRequest = maxDocuments*MaxDocument*4/3 + 64<<10
	// sendSize is the size of a frame.
	sendSize = 256 << 10
)

// request is the body of a request for a part.
type request struct {
	Ticket    string   `json:"ticket"`
	Offset    int64    `json:"offset"`
	Documents [][]byte `json:"documents"`
}

// Server sends parts of images to other agents.
type Server struct {
	Parts    runtime.Parts
	Verifier *ticket.Verifier
	Caller   func(*http.Request) string // name of the agent at the other end
	Uploads  chan struct{}              // its capacity is the number of parts that are sent at a time
	Meter    *Meter
	Logger   *slog.Logger
}

// Serve accepts other agents until ctx ends. cfg authenticates them.
func (s *Server) Serve(ctx context.Context, l net.Listener, cfg *tls.Config) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /parts/{digest}", s.part)
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug), // refused handshakes
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(tls.NewListener(netutil.LimitListener(l, maxConnections), cfg))
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve other agents: %w", err)
}

func (s *Server) part(w http.ResponseWriter, r *http.Request) {
	err := s.answer(w, r)
	if err == nil {
		return
	}
	level := slog.LevelDebug
	if errdefs.IsUnauthorized(err) || errdefs.IsPermissionDenied(err) {
		level = slog.LevelWarn
		s.Meter.refused.Inc()
	}
	s.Logger.Log(r.Context(), level, "part of an image refused", "agent", s.Caller(r), "digest", strconv.Quote(r.PathValue("digest")), "error", err)
	http.Error(w, err.Error(), errhttp.ToHTTP(err))
}

// answer checks a request and sends the part. After the first byte was sent, it returns nil.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) error {
	digest := r.PathValue("digest")
	if !validDigest.MatchString(digest) {
		return fmt.Errorf("digest is not sha256 and 64 hexadecimal digits: %w", errdefs.ErrInvalidArgument)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(sendTimeout))
	var req request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
		return fmt.Errorf("request: %v: %w", err, errdefs.ErrInvalidArgument)
	}
	claims, err := s.Verifier.Verify(req.Ticket, ticket.Layers)
	if err != nil {
		return err
	}
	if caller := s.Caller(r); claims.User != caller {
		return fmt.Errorf("ticket is for agent %s, not for %s: %w", claims.User, caller, errdefs.ErrPermissionDenied)
	}
	if err := belongs(claims.Path, digest, req.Documents); err != nil {
		return err
	}
	select {
	case s.Uploads <- struct{}{}:
		defer func() { <-s.Uploads }()
	default:
		return fmt.Errorf("%d parts are being sent already: %w", cap(s.Uploads), errdefs.ErrUnavailable)
	}
	part, err := s.Parts.OpenPart(r.Context(), digest)
	if err != nil {
		return err
	}
	defer part.Close()
	if req.Offset < 0 || req.Offset > part.Size() {
		return fmt.Errorf("offset %d is not 0 to %d: %w", req.Offset, part.Size(), errdefs.ErrOutOfRange)
	}
	s.Meter.uploads.Inc()
	defer s.Meter.uploads.Dec()
	if err := s.send(r.Context(), w, part, req.Offset); err != nil {
		s.Logger.Debug("part of an image not sent", "agent", claims.User, "digest", digest, "error", err)
	}
	return nil
}

// send sends a part as it becomes available.
func (s *Server) send(ctx context.Context, w http.ResponseWriter, part runtime.Part, at int64) error {
	out := http.NewResponseController(w)
	buf := make([]byte, headerSize+sendSize)
	for {
		have, complete, err := s.await(ctx, w, part, at)
		if err != nil {
			reason := err.Error()
			return errors.Join(err, writeFrame(w, frameAborted, append(buf[:headerSize], reason[:min(len(reason), maxReason)]...)))
		}
		for at < have {
			n, err := part.ReadAt(buf[headerSize:headerSize+min(sendSize, have-at)], at)
			if n == 0 && err != nil {
				return errors.Join(err, writeFrame(w, frameAborted, append(buf[:headerSize], "read error"...)))
			}
			_ = out.SetWriteDeadline(time.Now().Add(sendTimeout))
			if err := writeFrame(w, frameData, buf[:headerSize+n]); err != nil {
				return err
			}
			at += int64(n)
			s.Meter.sent.Add(float64(n))
		}
		if complete {
			_, err := w.Write([]byte{frameEnd})
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

// await waits for more of a part, and lets the receiver know that this agent still lives.
func (s *Server) await(ctx context.Context, w http.ResponseWriter, part runtime.Part, at int64) (have int64, complete bool, err error) {
	for {
		short, cancel := context.WithTimeout(ctx, keepAlive)
		have, complete, err = part.Await(short, at)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return have, complete, err
		}
		out := http.NewResponseController(w)
		_ = out.SetWriteDeadline(time.Now().Add(sendTimeout))
		if _, err := w.Write([]byte{frameWaiting}); err != nil {
			return 0, false, err
		}
		if err := out.Flush(); err != nil {
			return 0, false, err
		}
	}
}
