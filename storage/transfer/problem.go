package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/containerd/errdefs"
)

// problem is an error with what a client needs to act on it. It is answered
// as application/problem+json (RFC 9457).
type problem struct {
	status int
	code   string
	detail string
	field  string // which header or parameter
	limit  *int64
}

func (p *problem) Error() string { return p.detail }

func notFound(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errdefs.ErrNotFound)...)
}

func badHeader(field, format string, args ...any) error {
	return &problem{status: http.StatusBadRequest, code: "INVALID_ARGUMENT", field: field, detail: field + ": " + fmt.Sprintf(format, args...)}
}

func tooLarge(field string, limit int64) error {
	return &problem{
		status: http.StatusRequestEntityTooLarge, code: "INVALID_ARGUMENT", field: field, limit: &limit,
		detail: fmt.Sprintf("%s: larger than the %d bytes allowed", field, limit),
	}
}

// Changed refuses what was asked for only as long as something is as it was.
func Changed(format string, args ...any) error {
	return &problem{status: http.StatusPreconditionFailed, code: "FAILED_PRECONDITION", detail: fmt.Sprintf(format, args...)}
}

// classes give error classes their status and code, as in docs/storage-http.md.
var classes = []struct {
	is     func(error) bool
	status int
	code   string
}{
	{errdefs.IsInvalidArgument, http.StatusBadRequest, "INVALID_ARGUMENT"},
	{errdefs.IsUnauthorized, http.StatusUnauthorized, "UNAUTHENTICATED"},
	{errdefs.IsPermissionDenied, http.StatusForbidden, "PERMISSION_DENIED"},
	{errdefs.IsNotFound, http.StatusNotFound, "NOT_FOUND"},
	{errdefs.IsAlreadyExists, http.StatusConflict, "ALREADY_EXISTS"},
	{errdefs.IsConflict, http.StatusConflict, "ABORTED"},
	{errdefs.IsFailedPrecondition, http.StatusConflict, "FAILED_PRECONDITION"},
	{errdefs.IsResourceExhausted, http.StatusInsufficientStorage, "RESOURCE_EXHAUSTED"},
	{errdefs.IsUnavailable, http.StatusServiceUnavailable, "UNAVAILABLE"},
	{errdefs.IsDeadlineExceeded, http.StatusGatewayTimeout, "DEADLINE_EXCEEDED"},
}

func describe(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	for _, c := range classes {
		if c.is(err) {
			return &problem{status: c.status, code: c.code, detail: err.Error()}
		}
	}
	return &problem{status: http.StatusInternalServerError, code: "INTERNAL", detail: "internal error"}
}

// fail answers with a problem, or ends the connection when the answer has
// begun: a client must not take half a file for a whole one.
func (s *Server) fail(x *exchange, err error) {
	x.err = err
	if errors.Is(err, context.Canceled) { // no one is there to read an answer
		panic(http.ErrAbortHandler)
	}
	p := describe(err)
	s.metrics.errors.WithLabelValues(x.kind, p.code).Inc()
	if x.status != 0 {
		panic(http.ErrAbortHandler)
	}
	x.deadline.shorten()
	h := x.Header()
	for _, name := range []string{"ETag", "Last-Modified", "Content-Disposition", "Content-Length", "Upload-Offset"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="berth storage"`)
	}
	if p.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "2")
	}
	title := http.StatusText(p.status)
	if p.status == statusChecksum {
		title = "Checksum Mismatch"
	}
	x.WriteHeader(p.status)
	_ = json.NewEncoder(x).Encode(struct { // the client may be gone
		Type    string `json:"type"`
		Title   string `json:"title"`
		Status  int    `json:"status"`
		Detail  string `json:"detail"`
		Code    string `json:"code"`
		Request string `json:"requestId"`
		Field   string `json:"field,omitempty"`
		Limit   *int64 `json:"limit,omitempty"`
	}{"about:blank", title, p.status, p.detail, p.code, x.request, p.field, p.limit})
}
