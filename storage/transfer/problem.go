package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/problem"
)

func notFound(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errdefs.ErrNotFound)...)
}

// Status returns the HTTP status and the words for an error, as
// docs/storage-http.md describes them.
func Status(err error) (status int, words string) {
	p, _ := problem.From(err)
	return cmp.Or(p.Status, problem.Status(p.Code)), p.Message
}

// fail answers with a problem, or ends the connection when the answer has
// begun: a client must not take half a file for a whole one.
func (s *Server) fail(x *exchange, r *http.Request, err error) {
	x.err = err
	if errors.Is(err, context.Canceled) { // no one is there to read an answer
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
