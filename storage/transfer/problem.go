package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

func notFound(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errdefs.ErrNotFound)...)
}

// Status returns the HTTP status and the message for an error, as described in
// docs/storage-http.md.
func Status(err error) (status int, words string) {
	p, _ := problem.From(err)
	return cmp.Or(p.Status, problem.Status(p.Code)), p.Message
}

// fail answers with a problem, or ends the connection when the answer has begun: a client must not
// take a part of a file for the whole file.
func (s *Server) fail(x *exchange, r *http.Request, err error) {
	x.err = err
	if errors.Is(err, context.Canceled) { // the client has disconnected
		panic(http.ErrAbortHandler)
	}
	p, _ := problem.From(err)
	s.metrics.errors.WithLabelValues(x.kind, p.Code).Inc()
	if x.status != 0 {
		panic(http.ErrAbortHandler)
	}
	x.deadline.shorten()
	h := x.Header()
	for _, name := range []string{"ETag", "Last-Modified", "Content-Disposition", "Content-Length", "Upload-Offset"} {
		h.Del(name)
	}
	switch p.Code {
	case problem.CodeUnauthenticated:
		h.Set("WWW-Authenticate", `Bearer realm="berth storage"`)
	case problem.CodeUnavailable:
		h.Set("Retry-After", "2")
	}
	problem.WriteHTTP(x, r, err)
}

// reserve reserves storage for an upload, `more` bytes in addition to earlier reservations. It
// returns an error if the limit of the scope or the free space of the disk is too small.
func reserve(ctx context.Context, v *volume.Volume, scope string, r volume.Room, more int64) error {
	if err := v.Room(more); err != nil {
		return err
	}
	return v.Reserve(ctx, scope, r)
}

// explain adds the limit of the scope to an error of a product that enforces the limit itself.
func (s *Server) explain(c ticket.Claims, err error) error {
	if !errors.Is(err, errLimit) {
		return err
	}
	v, verr := s.cfg.Volumes.Get(c.Volume)
	if verr != nil {
		return err
	}
	scope := v.LastScope(c.Scope)
	if most := scope.GetLimit().GetInodes(); most > 0 && scope.GetUsedInodes() >= most {
		return noRoom(most, "write upload: the scope's limit of %d files and directories is reached; free some files, then resume the upload", most)
	}
	limit := scope.GetLimit().GetBytes()
	if limit == 0 {
		return err
	}
	return noRoom(limit, "write upload: the scope's limit of %d bytes is reached; free some space, then resume the upload", limit)
}

func noRoom(limit int64, format string, args ...any) error {
	return problem.Full(format, args...).WithLimit(strconv.FormatInt(limit, 10))
}
